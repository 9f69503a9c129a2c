//! `--hotkeys`: the keys that are used most, by the counters of an LFU policy.

use super::distribution::{all_at_once, percent, progress};
use super::scan::{Walk, keys_total};
use crate::command::refused;
use crate::options::{Options, leading_integer};
use crate::out::{Outcome, put};
use crate::session::Session;
use crate::wait;
use crate::words::quoted;
use client::Reply;

/// How many are shown unless `--top` says otherwise.
const SHOWN: usize = 16;

/// Walks over the keys and prints the hottest; Ctrl-C ends the walk and the summary follows.
pub fn run(session: &mut Session, options: &Options) -> Outcome {
    wait::catch();
    session.patient = true;
    let top = options.top.as_deref().map(leading_integer);
    let top = top
        .and_then(|top| usize::try_from(top).ok())
        .filter(|top| *top > 0)
        .unwrap_or(SHOWN);
    let mut walk = Walk::new(options)?;
    let total = keys_total(session)?;
    let bar = progress(total, "keys");
    let say = |line: String| bar.suspend(|| put(line + "\n"));
    say(
        "\n# Scanning the entire keyspace to find hot keys as well as\n\
         # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
         # per 100 SCAN commands (not usually needed).\n"
            .to_owned(),
    );
    // From the hottest down.
    let mut hottest: Vec<(i64, Vec<u8>)> = Vec::new();
    let mut sampled = 0;
    while !wait::interrupted()
        && let Some(keys) = walk.next(session)?
    {
        let asked: Vec<Vec<&[u8]>> = keys
            .iter()
            .map(|key| vec![b"OBJECT".as_slice(), b"FREQ", key])
            .collect();
        let replies = all_at_once(session, &asked)?;
        let before = sampled;
        for (key, reply) in keys.into_iter().zip(&replies) {
            sampled += 1;
            let counter = match reply {
                // A key that is gone meanwhile is not hot.
                Reply::Error(text) if text.ends_with(b"no such key") => 0,
                other => match other.integer() {
                    Some(counter) => counter,
                    None if other.is_null() => 0,
                    None => return Err(refused(reply)),
                },
            };
            let coldest = hottest.last().map_or(0, |(counter, _)| *counter);
            if counter == 0 || (hottest.len() == top && counter <= coldest) {
                continue;
            }
            let at = hottest.partition_point(|(other, _)| *other >= counter);
            say(format!(
                "[{:05.2}%] Hot key '{}' found so far with counter {counter}",
                percent(before, total),
                quoted(&key)
            ));
            hottest.insert(at, (counter, key));
            hottest.truncate(top);
        }
        bar.set_position(sampled);
    }
    bar.finish_and_clear();
    let mut text =
        format!("\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!\n");
    for (counter, key) in &hottest {
        text += &format!(
            "hot key found with counter: {counter}\tkeyname: {}\n",
            quoted(key)
        );
    }
    put(text);
    Ok(())
}
