//! The page: one file, with nothing fetched from anywhere.

use super::chart::{self, Bar, COLOURS, number};
use super::numbers::Sample;
use super::results::{Cell, PERCENTILES, Results, Run};
use std::fmt::Write;

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:1160px;margin:2em auto;padding:0 1em;color:#222;\
background:#fff}h1,h2{line-height:1.2}table{border-collapse:collapse;margin:.5em 0 1.5em}\
th,td{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}\
td{white-space:nowrap}th:first-child,td:first-child,.text{text-align:left}\
td.text{white-space:normal}\
caption{text-align:left;font-weight:600;padding:.3em 0}small,.dim{color:#666}\
svg{width:100%;max-width:760px;display:block;margin:.5em 0 1.5em}\
.grid-of{display:grid;grid-template-columns:repeat(auto-fill,minmax(330px,1fr));gap:1em}\
svg text{font:12px system-ui,sans-serif;fill:#222}svg .head{font-weight:600;font-size:13px}\
svg .value{fill:#555;font-size:11px}.whisker{stroke:#222;stroke-width:1.5}.grid{stroke:#ddd}\
.key{display:inline-block;width:.8em;height:.8em;margin-right:.4em}.warn{background:#fff6d8;\
padding:.6em 1em}code{font-size:.9em}";

/// Text for the page.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(letter),
        }
    }
    out
}

/// The whole page.
pub fn render(results: &Results) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = page(&mut out, results);
    out
}

fn page(out: &mut String, results: &Results) -> std::fmt::Result {
    let title = escape(&results.title);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{}</p>\n",
        escape(&results.about)
    )?;
    let runs = results
        .cells
        .iter()
        .map(|cell| cell.runs.len())
        .max()
        .unwrap_or(0);
    writeln!(
        out,
        "<p class=\"dim\">{}, up to {runs} runs of each, in turn. Intervals are of 95% \
         confidence.</p>",
        date(results.started)
    )?;
    if results.is_interrupted {
        writeln!(
            out,
            "<p class=\"warn\">Ended before its time: what was measured until then.</p>"
        )?;
    }
    targets(out, results)?;
    charts(out, results)?;
    for case in results.cases() {
        table(out, results, &case)?;
    }
    machine(out, results)?;
    if !results.notes.is_empty() {
        writeln!(out, "<h2>Notes</h2>\n<ul>")?;
        for note in &results.notes {
            writeln!(out, "<li>{}</li>", escape(note))?;
        }
        writeln!(out, "</ul>")?;
    }
    writeln!(out, "</body>\n</html>")
}

fn targets(out: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(
        out,
        "<h2>Targets</h2>\n<table><thead><tr><th>Target</th><th>Says it is</th><th>An hour</th>\
         <th class=\"text\">How</th></tr></thead><tbody>"
    )?;
    for (at, target) in results.targets.iter().enumerate() {
        let price = target
            .price_per_hour
            .map(|price| price.to_string())
            .unwrap_or_default();
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td>\
             <td>{price}</td><td class=\"text\"><code>{}</code></td></tr>",
            key(at, &target.name),
            escape(&target.version),
            escape(&target.how)
        )?;
    }
    writeln!(out, "</tbody></table>")
}

fn charts(out: &mut String, results: &Results) -> std::fmt::Result {
    let measured = |cell: &&Cell| !cell.runs.is_empty();
    let groups = |sample: &dyn Fn(&Cell) -> Option<Sample>| {
        let of_case = |case: &String| {
            let bars = results
                .targets
                .iter()
                .enumerate()
                .filter_map(|(target, spec)| {
                    let cell = results.cell(&spec.name, case).filter(measured)?;
                    let sample = sample(cell)?;
                    Some(Bar {
                        target,
                        value: sample.mean,
                        margin: sample.margin,
                    })
                });
            (case.clone(), bars.collect::<Vec<_>>())
        };
        results.cases().iter().map(of_case).collect::<Vec<_>>()
    };
    write!(out, "<h2>Charts</h2>\n<p>")?;
    for (at, target) in results.targets.iter().enumerate() {
        write!(out, "{} ", key(at, &target.name))?;
    }
    writeln!(out, "</p>")?;
    let rates = groups(&|cell| Some(cell.sample(|run| run.rate)));
    out.push_str(&chart::bars("Requests a second", "more is better", &rates));
    let tails = groups(&|cell| Some(cell.sample(|run| run.p99_ms)));
    out.push_str(&chart::bars(
        "99th percentile, ms",
        "less is better",
        &tails,
    ));
    let times = groups(&|cell| cell.server_us());
    if times.iter().any(|(_, bars)| !bars.is_empty()) {
        let title = "Server's processor time a request, microseconds";
        out.push_str(&chart::bars(title, "less is better", &times));
    }
    writeln!(
        out,
        "<h2>Latency by percentile</h2>\n<div class=\"grid-of\">"
    )?;
    for case in results.cases() {
        let mut lines = Vec::new();
        for (at, target) in results.targets.iter().enumerate() {
            let Some(cell) = results.cell(&target.name, &case).filter(measured) else {
                continue;
            };
            let mean = |number: usize| {
                cell.sample(|run| run.percentiles_ms.get(number).copied().unwrap_or(0.0))
                    .mean
            };
            lines.push((at, (0..PERCENTILES.len()).map(mean).collect()));
        }
        writeln!(out, "<div>{}</div>", chart::percentiles(&case, &lines))?;
    }
    writeln!(out, "</div>\n<h2>Figures</h2>")
}

/// A target's name with its colour.
fn key(target: usize, name: &str) -> String {
    let colour = COLOURS[target % COLOURS.len()];
    let name = escape(name);
    format!("<span class=\"key\" style=\"background:{colour}\"></span>{name}")
}

fn table(out: &mut String, results: &Results, case: &str) -> std::fmt::Result {
    let has_price = results
        .targets
        .iter()
        .any(|target| target.price_per_hour.is_some());
    let has_instances = results
        .cells
        .iter()
        .flat_map(|cell| &cell.runs)
        .any(|run| run.instances != 1);
    write!(
        out,
        "<table><caption>{}</caption><thead><tr><th>Target</th><th>Requests/s</th><th>±</th>\
         <th>least</th><th>most</th><th>to the first</th><th>avg ms</th><th>p50 ms</th>\
         <th>p99 ms</th><th>±</th><th>max ms</th><th>server µs</th>",
        escape(case)
    )?;
    if has_instances {
        write!(out, "<th>instances</th>")?;
    }
    if has_price {
        write!(out, "<th>million requests for 1</th>")?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    let first = results
        .targets
        .first()
        .and_then(|first| results.cell(&first.name, case));
    let first = first.map(|cell| cell.sample(|run| run.rate));
    for (at, target) in results.targets.iter().enumerate() {
        let Some(cell) = results.cell(&target.name, case) else {
            continue;
        };
        if cell.runs.is_empty() {
            let columns = 11 + usize::from(has_instances) + usize::from(has_price);
            writeln!(
                out,
                "<tr><td>{}</td><td colspan=\"{columns}\" class=\"dim\">not measured</td></tr>",
                key(at, &target.name)
            )?;
            continue;
        }
        let of = |figure: fn(&Run) -> f64| cell.sample(figure);
        let (rate, tail) = (of(|run| run.rate), of(|run| run.p99_ms));
        let ratio = first
            .filter(|first| first.mean > 0.0)
            .map(|first| rate.mean / first.mean);
        write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td>\
             <td>{:.3}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td><td>{}</td>",
            key(at, &target.name),
            number(rate.mean),
            number(rate.margin),
            number(rate.least),
            number(rate.most),
            ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            of(|run| run.avg_ms).mean,
            of(|run| run.p50_ms).mean,
            tail.mean,
            tail.margin,
            of(|run| run.max_ms).most,
            cell.server_us()
                .map(|us| number(us.mean))
                .unwrap_or_default()
        )?;
        if has_instances {
            write!(out, "<td>{:.1}</td>", of(|run| run.instances as f64).mean)?;
        }
        if has_price {
            let price = target.price_per_hour.filter(|&price| price > 0.0);
            let value = price.map(|price| number(rate.mean * 3600.0 / price / 1e6));
            write!(out, "<td>{}</td>", value.unwrap_or_default())?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table>")
}

fn machine(out: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(
        out,
        "<h2>Machine</h2>\n<table><thead><tr><th>What</th><th class=\"text\">Is</th>\
         <th class=\"text\">Advice</th></tr></thead><tbody>"
    )?;
    for fact in &results.machine {
        writeln!(
            out,
            "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>",
            escape(&fact.name),
            escape(&fact.value),
            escape(fact.advice.as_deref().unwrap_or_default())
        )?;
    }
    writeln!(out, "</tbody></table>")
}

/// Seconds since 1970 as a date and a time, in UTC.
fn date(seconds: u64) -> String {
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    loop {
        let length = 365 + u64::from(is_leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!(
        "{year}-{month:02}-{:02} {:02}:{:02} UTC",
        days + 1,
        rest / 3600,
        rest / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_796_083_200), "2026-12-01 00:00 UTC");
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escape("<a href=\"x\">&"),
            "&lt;a href=&quot;x&quot;&gt;&amp;"
        );
    }
}
