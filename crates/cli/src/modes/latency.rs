//! `--latency` and its relatives: how long a PING takes, and how long the machine itself waits.

use crate::highlight::RESET;
use crate::options::{Options, seconds};
use crate::out::{Outcome, put, to_terminal};
use crate::render::Format;
use crate::session::Session;
use crate::wait;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Between two PINGs.
const BETWEEN: Duration = Duration::from_millis(10);
/// A single measurement where the result is printed once.
const ONCE: Duration = Duration::from_secs(1);
/// A range of the history.
const RANGE: Duration = Duration::from_secs(15);

/// Milliseconds of the samples so far.
#[derive(Debug, Default)]
struct Samples {
    min: u64,
    max: u64,
    sum: u64,
    count: u64,
}

impl Samples {
    fn add(&mut self, millis: u64) {
        self.min = if self.count == 0 {
            millis
        } else {
            self.min.min(millis)
        };
        self.max = self.max.max(millis);
        self.sum += millis;
        self.count += 1;
    }

    fn average(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    fn line(&self, format: Format) -> String {
        let Self {
            min, max, count, ..
        } = self;
        let average = self.average();
        match format {
            Format::Formatted => {
                format!("min: {min}, max: {max}, avg: {average:.2} ({count} samples)")
            }
            Format::Raw => format!("{min} {max} {average:.2} {count}"),
            Format::Csv => format!("{min},{max},{average:.2},{count}"),
            Format::Json | Format::QuotedJson => {
                format!(r#"{{"min":{min},"max":{max},"avg":{average:.2},"count":{count}}}"#)
            }
        }
    }
}

fn ping(session: &mut Session) -> Result<Duration, crate::out::Failure> {
    let start = Instant::now();
    session.call(&["PING"])?;
    Ok(start.elapsed())
}

/// `--latency`, and with `history` a new range every now and then. At a terminal the line is
/// redrawn for ever; elsewhere each range is one line, and without history there is one range.
pub fn run(session: &mut Session, options: &Options, format: Format, history: bool) -> Outcome {
    let live = to_terminal() && format == Format::Formatted;
    let range = match (options.interval(), history) {
        (Some(interval), _) if !interval.is_zero() => interval,
        (_, true) => RANGE,
        (_, false) => ONCE,
    };
    let mut samples = Samples::default();
    let mut begin = Instant::now();
    loop {
        let took = ping(session)?;
        samples.add(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        if live {
            put(format!("\x1b[0G\x1b[2K{}", samples.line(format)));
        }
        let so_far = begin.elapsed();
        if so_far >= range && (history || !live) {
            let mut line = String::new();
            if !live {
                line += &samples.line(format);
            }
            if history && matches!(format, Format::Formatted | Format::Raw) {
                line += &format!(" -- {:.2} seconds range", so_far.as_secs_f64());
            }
            put(line + "\n");
            if !history {
                return Ok(());
            }
            samples = Samples::default();
            begin = Instant::now();
        }
        if !wait::pause(BETWEEN) {
            return Ok(());
        }
    }
}

/// A class of latency: up to how many microseconds, and its letter.
const CLASSES: [(u64, char); 31] = [
    (10, '.'),
    (125, '-'),
    (250, '*'),
    (500, '#'),
    (1_000, '1'),
    (2_000, '2'),
    (3_000, '3'),
    (4_000, '4'),
    (5_000, '5'),
    (6_000, '6'),
    (7_000, '7'),
    (8_000, '8'),
    (9_000, '9'),
    (10_000, 'A'),
    (20_000, 'B'),
    (30_000, 'C'),
    (40_000, 'D'),
    (50_000, 'E'),
    (100_000, 'F'),
    (200_000, 'G'),
    (300_000, 'H'),
    (400_000, 'I'),
    (500_000, 'J'),
    (1_000_000, 'K'),
    (2_000_000, 'L'),
    (4_000_000, 'M'),
    (8_000_000, 'N'),
    (16_000_000, 'O'),
    (30_000_000, 'P'),
    (60_000_000, 'Q'),
    (u64::MAX, '?'),
];

/// Colours of a terminal with 256 of them, from no share to all of it.
const PALETTE: [u8; 19] = [
    0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196,
];
/// Lines of the spectrum between two legends.
const LINES_A_LEGEND: usize = 20;

/// `--latency-dist`: each line is a second or `-i`, each letter a class, each colour its share.
/// Where output is no terminal, the line has the classes that were met with their counts.
pub fn spectrum(session: &mut Session, options: &Options) -> Outcome {
    let range = options
        .interval()
        .filter(|interval| !interval.is_zero())
        .unwrap_or(ONCE);
    let mut lines = 0;
    let repeat = crate::command::Repeat::new(options);
    let times = options.repeat.as_ref().and(repeat.times);
    while times.is_none_or(|times| lines < times as usize) {
        if to_terminal() && lines % LINES_A_LEGEND == 0 {
            put(legend());
        }
        let mut counts = [0_u64; CLASSES.len()];
        let begin = Instant::now();
        while begin.elapsed() < range {
            let micros = u64::try_from(ping(session)?.as_micros()).unwrap_or(u64::MAX);
            counts[CLASSES.partition_point(|(most, _)| *most < micros)] += 1;
        }
        put(spectrum_line(&counts, to_terminal()));
        lines += 1;
    }
    Ok(())
}

fn legend() -> String {
    let line = "---------------------------------------------\n";
    let mut text = format!(
        "{line}. - * #          .01 .125 .25 .5 milliseconds\n\
         1,2,3,...,9      from 1 to 9     milliseconds\n\
         A,B,C,D,E        10,20,30,40,50  milliseconds\n\
         F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n\
         K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n\
         From 0 to 100%: "
    );
    for colour in PALETTE {
        text += &format!("\x1b[48;5;{colour}m ");
    }
    text + RESET + "\n" + line
}

fn spectrum_line(counts: &[u64; CLASSES.len()], coloured: bool) -> String {
    let total: u64 = counts.iter().sum();
    let steps = PALETTE.len() as u64 - 1;
    let mut text = String::new();
    if !coloured {
        let met = counts.iter().zip(CLASSES).filter(|(count, _)| **count > 0);
        let met: Vec<String> = met
            .map(|(count, (_, letter))| format!("{letter}:{count}"))
            .collect();
        return met.join(" ") + "\n";
    }
    text += "\x1b[38;5;0m";
    for (count, (_, letter)) in counts.iter().zip(CLASSES) {
        let step = (count * steps).div_ceil(total.max(1)).min(steps);
        let colour = PALETTE[usize::try_from(step).unwrap_or(0)];
        let _ = write!(text, "\x1b[48;5;{colour}m{letter}");
    }
    text + RESET + "\n"
}

/// `--intrinsic-latency`: how long this process is kept from running, though it always wants to.
pub fn intrinsic(options: &Options) -> Outcome {
    wait::catch();
    let time = options
        .intrinsic_latency
        .as_deref()
        .map_or(Duration::ZERO, seconds);
    let begin = Instant::now();
    let (mut runs, mut worst, mut worst_micros) = (0_u64, Duration::ZERO, 0);
    let mut before = begin;
    loop {
        work(runs);
        let now = Instant::now();
        let took = now - before;
        before = now;
        runs += 1;
        worst = worst.max(took);
        let micros = took.as_micros();
        if micros > worst_micros {
            worst_micros = micros;
            put(format!("Max latency so far: {micros} microseconds.\n"));
            // Printing is ours, not the machine's.
            before = Instant::now();
        }
        if now - begin >= time || (runs.is_multiple_of(1 << 20) && wait::interrupted()) {
            break;
        }
    }
    let nanos = begin.elapsed().as_nanos() as f64 / runs as f64;
    put(format!(
        "\n{runs} total runs (avg latency: {:.4} microseconds / {nanos:.2} nanoseconds per run).\n\
         Worst run took {:.0}x longer than the average latency.\n",
        nanos / 1000.0,
        worst.as_nanos() as f64 / nanos,
    ));
    Ok(())
}

/// Something to be kept from.
fn work(seed: u64) {
    let mut state = seed;
    for _ in 0..8 {
        state = std::hint::black_box(state.rotate_left(13).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_up_in_every_format() {
        let mut samples = Samples::default();
        [3, 1, 2].iter().for_each(|millis| samples.add(*millis));
        assert_eq!(samples.line(Format::Raw), "1 3 2.00 3");
        assert_eq!(
            samples.line(Format::Formatted),
            "min: 1, max: 3, avg: 2.00 (3 samples)"
        );
        assert!(samples.line(Format::Json).starts_with("{\"min\":1,"));
    }

    #[test]
    fn a_spectrum_without_colours_is_counts() {
        let mut counts = [0; CLASSES.len()];
        counts[1] = 5;
        counts[30] = 1;
        assert_eq!(spectrum_line(&counts, false), "-:5 ?:1\n");
        assert!(spectrum_line(&counts, true).contains("\x1b[48;5;214m-"));
    }
}
