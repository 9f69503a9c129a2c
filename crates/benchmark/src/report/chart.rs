//! Charts as SVG, with nothing but what the page itself has.

use super::page::escape;
use super::results::PERCENTILES;
use std::fmt::Write;

/// Colours that are told apart with every kind of sight (after Okabe and Ito).
pub const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#f0e442",
];

/// A bar: whose, how long, and how uncertain.
#[derive(Debug, Clone)]
pub struct Bar {
    pub target: usize,
    pub value: f64,
    pub margin: f64,
}

/// Bars in groups, one under the other.
pub fn bars(title: &str, unit: &str, groups: &[(String, Vec<Bar>)]) -> String {
    const WIDTH: f64 = 760.0;
    const LEFT: f64 = 190.0;
    const RIGHT: f64 = 90.0;
    const BAR: f64 = 14.0;
    const GAP: f64 = 12.0;
    let most = groups
        .iter()
        .flat_map(|(_, bars)| bars.iter().map(|bar| bar.value + bar.margin))
        .fold(0.0, f64::max);
    let count: usize = groups.iter().map(|(_, bars)| bars.len()).sum();
    let height = 24.0 + count as f64 * BAR + groups.len() as f64 * GAP;
    let scale = if most > 0.0 {
        (WIDTH - LEFT - RIGHT) / most
    } else {
        0.0
    };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {height:.0}\"><title>{}</title>\
         <text x=\"0\" y=\"14\" class=\"head\">{} ({})</text>",
        escape(title),
        escape(title),
        escape(unit)
    );
    let mut y = 24.0;
    for (name, bars) in groups {
        let middle = y + bars.len() as f64 * BAR / 2.0 + 4.0;
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            escape(name)
        );
        for bar in bars {
            let colour = COLOURS[bar.target % COLOURS.len()];
            let (width, whisker) = (bar.value * scale, bar.margin * scale);
            let _ = write!(
                out,
                "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" \
                 fill=\"{colour}\"/>",
                y + 1.0,
                BAR - 2.0
            );
            let line = y + BAR / 2.0;
            if whisker > 0.5 {
                let _ = write!(
                    out,
                    "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{line:.1}\" y2=\"{line:.1}\" \
                     class=\"whisker\"/>",
                    (LEFT + width - whisker).max(LEFT),
                    LEFT + width + whisker
                );
            }
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" class=\"value\">{}</text>",
                LEFT + width + whisker + 5.0,
                line + 4.0,
                number(bar.value)
            );
            y += BAR;
        }
        y += GAP;
    }
    out.push_str("</svg>\n");
    out
}

/// Latency by percentile, a line each, on a logarithmic scale.
pub fn percentiles(title: &str, lines: &[(usize, Vec<f64>)]) -> String {
    const WIDTH: f64 = 370.0;
    const HEIGHT: f64 = 220.0;
    const LEFT: f64 = 52.0;
    const TOP: f64 = 26.0;
    const BOTTOM: f64 = 24.0;
    const RIGHT: f64 = 20.0;
    /// What is quicker is drawn as this, in milliseconds.
    const LEAST: f64 = 0.001;
    let values = || {
        lines
            .iter()
            .flat_map(|(_, values)| values.iter().map(|ms| ms.max(LEAST)))
    };
    let low = values().fold(f64::INFINITY, f64::min).log10().floor();
    let high = values().fold(LEAST, f64::max).log10().ceil();
    let low = if low.is_finite() {
        low.min(high - 1.0)
    } else {
        high - 1.0
    };
    let x = |at: usize| LEFT + (WIDTH - LEFT - RIGHT) * at as f64 / (PERCENTILES.len() - 1) as f64;
    let y = |ms: f64| {
        let part = (ms.max(LEAST).log10() - low) / (high - low);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    };
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\"><title>{}</title>\
         <text x=\"0\" y=\"14\" class=\"head\">{} (ms)</text>",
        escape(title),
        escape(title)
    );
    let mut power = low;
    while power <= high {
        let ms = 10f64.powf(power);
        let at = y(ms);
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" class=\"value\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 5.0,
            at + 4.0,
            ms as f32
        );
        power += 1.0;
    }
    for (at, percentile) in PERCENTILES.iter().enumerate() {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" class=\"value\">{}</text>",
            x(at),
            HEIGHT - 8.0,
            match *percentile {
                percentile if percentile > 0.0 => percentile.to_string(),
                _ => "least".to_owned(),
            }
        );
    }
    for (target, values) in lines {
        let points: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(at, &ms)| format!("{:.1},{:.1}", x(at), y(ms)))
            .collect();
        let _ = write!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
            points.join(" "),
            COLOURS[target % COLOURS.len()]
        );
    }
    out.push_str("</svg>\n");
    out
}

/// A number as people write it: three digits or whole thousands.
pub fn number(value: f64) -> String {
    if value >= 1000.0 {
        let digits = format!("{value:.0}");
        let mut out = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at) % 3 == 0 {
                out.push(',');
            }
            out.push(digit);
        }
        return out;
    }
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let seen = [1234567.8, 999.9, 12.34, 1.234, 0.1234, 0.0].map(number);
        assert_eq!(
            seen,
            ["1,234,568", "1000", "12.3", "1.23", "0.123", "0.000"]
        );
    }

    #[test]
    fn charts_of_nothing_have_no_wrong_numbers() {
        let empty = Bar {
            target: 0,
            value: 0.0,
            margin: 0.0,
        };
        for svg in [
            bars("a<b", "x", &[("row".to_owned(), vec![empty])]),
            bars("a", "x", &[]),
            percentiles("a", &[(9, vec![0.0; PERCENTILES.len()])]),
            percentiles("a", &[]),
        ] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(!svg.contains("a<b"), "{svg}");
        }
    }
}
