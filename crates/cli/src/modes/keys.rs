//! `--bigkeys` and `--memkeys`: the biggest key of each kind, and averages.

use super::distribution::{KINDS, Kind, kinds, lengths, memory, percent, progress};
use super::scan::{Walk, keys_total};
use crate::options::Options;
use crate::out::{Failure, Outcome};
use crate::session::Session;
use crate::wait;
use crate::words::quoted;

/// What is known of one kind.
struct Tally {
    kind: Kind,
    count: u64,
    size: u64,
    biggest: Option<(Vec<u8>, u64)>,
}

/// By what a key is big.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    Elements,
    /// Memory, looking at so many elements of each if that is said.
    Memory(Option<i64>),
}

/// Walks over the keys and prints what it finds; Ctrl-C ends the walk and the summary follows.
pub fn run(session: &mut Session, options: &Options, measure: Measure) -> Outcome {
    wait::catch();
    session.patient = true;
    let mut walk = Walk::new(options)?;
    let total = keys_total(session)?;
    let bar = progress(total, "keys");
    let say = |line: String| bar.suspend(|| crate::out::put(line + "\n"));
    say(
        "\n# Scanning the entire keyspace to find biggest keys as well as\n\
         # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
         # per 100 SCAN commands (not usually needed).\n"
            .to_owned(),
    );
    let mut tallies: Vec<Tally> = KINDS.iter().copied().map(tally).collect();
    let (mut sampled, mut name_bytes) = (0, 0);
    while !wait::interrupted()
        && let Some(keys) = walk.next(session)?
    {
        let before = sampled;
        for (key, kind, size) in measured(session, &keys, measure)? {
            let at = tallies.iter().position(|tally| tally.kind == kind);
            let at = at.unwrap_or_else(|| {
                tallies.push(tally(kind));
                tallies.len() - 1
            });
            let tally = &mut tallies[at];
            tally.count += 1;
            tally.size += size;
            sampled += 1;
            name_bytes += key.len() as u64;
            if tally.biggest.as_ref().is_none_or(|(_, most)| size > *most) {
                say(format!(
                    "[{:05.2}%] Biggest {:<6} found so far '{}' with {size} {}",
                    percent(before, total),
                    kind.name,
                    quoted(&key),
                    measure.unit(kind),
                ));
                tally.biggest = Some((key, size));
            }
        }
        bar.set_position(sampled);
    }
    bar.finish_and_clear();
    crate::out::put(summary(&tallies, measure, sampled, name_bytes));
    Ok(())
}

fn tally(kind: Kind) -> Tally {
    Tally {
        kind,
        count: 0,
        size: 0,
        biggest: None,
    }
}

impl Measure {
    fn unit(self, kind: Kind) -> &'static str {
        match self {
            Self::Elements => kind.unit,
            Self::Memory(_) => "bytes",
        }
    }
}

/// The keys that are still there, with their kinds and sizes.
fn measured(
    session: &mut Session,
    keys: &[Vec<u8>],
    measure: Measure,
) -> Result<Vec<(Vec<u8>, Kind, u64)>, Failure> {
    let kinds = kinds(session, keys)?;
    let there: Vec<(&[u8], Kind)> = keys
        .iter()
        .zip(kinds)
        .filter_map(|(key, kind)| Some((key.as_slice(), kind?)))
        .collect();
    let sizes = match measure {
        Measure::Elements => lengths(session, &there)?,
        Measure::Memory(samples) => {
            let names: Vec<&[u8]> = there.iter().map(|(key, _)| *key).collect();
            memory(session, &names, samples)?
        }
    };
    let all = there.into_iter().zip(sizes);
    Ok(all
        .map(|((key, kind), size)| (key.to_vec(), kind, size))
        .collect())
}

fn summary(tallies: &[Tally], measure: Measure, sampled: u64, name_bytes: u64) -> String {
    let average = |sum: u64, count: u64| match count {
        0 => 0.0,
        _ => sum as f64 / count as f64,
    };
    let mut text = format!(
        "\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!\n\
         Total key length in bytes is {name_bytes} (avg len {:.2})\n\n",
        average(name_bytes, sampled)
    );
    for tally in tallies {
        if let Some((key, size)) = &tally.biggest {
            text += &format!(
                "Biggest {:>6} found '{}' has {size} {}\n",
                tally.kind.name,
                quoted(key),
                measure.unit(tally.kind),
            );
        }
    }
    text.push('\n');
    for tally in tallies {
        text += &format!(
            "{} {}s with {} {} ({:05.2}% of keys, avg size {:.2})\n",
            tally.count,
            tally.kind.name,
            tally.size,
            measure.unit(tally.kind),
            percent(tally.count, sampled),
            average(tally.size, tally.count),
        );
    }
    text
}
