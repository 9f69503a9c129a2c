//! `--stat`: what the server does, a line at a time.

use super::distribution::human;
use crate::command::refused;
use crate::options::Options;
use crate::out::{Outcome, put};
use crate::session::Session;
use crate::wait;
use std::collections::HashMap;
use std::time::Duration;

/// Lines between two headings.
const LINES_A_HEADING: usize = 20;

/// Prints until Ctrl-C, or as often as `-r` says.
pub fn run(session: &mut Session, options: &Options) -> Outcome {
    let repeat = crate::command::Repeat::new(options);
    let times = match options.repeat {
        Some(_) => repeat.times,
        None => None,
    };
    let interval = options
        .interval()
        .filter(|interval| !interval.is_zero())
        .unwrap_or(Duration::from_secs(1));
    let mut requests_before = None;
    let mut lines = 0;
    while times.is_none_or(|times| lines < times as usize) {
        let reply = session.call(&["INFO"])?;
        let Some(text) = reply.text().filter(|_| !reply.is_error()) else {
            return Err(refused(&reply));
        };
        if lines % LINES_A_HEADING == 0 {
            put(
                "------- data ------ --------------------- load -------------------- - child -\n\
                 keys       mem      clients blocked requests            connections          \n",
            );
        }
        let info = Info::read(&text);
        let requests = info.number("total_commands_processed");
        let more = requests.saturating_sub(requests_before.unwrap_or(requests));
        requests_before = Some(requests);
        put(info.line(requests, more));
        lines += 1;
        if !wait::pause(interval) {
            break;
        }
    }
    Ok(())
}

/// INFO's fields by name.
struct Info<'a>(HashMap<&'a str, &'a str>);

impl<'a> Info<'a> {
    fn read(text: &'a str) -> Self {
        Self(
            text.lines()
                .filter_map(|line| line.trim_end().split_once(':'))
                .collect(),
        )
    }

    fn number(&self, name: &str) -> u64 {
        self.0
            .get(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    /// The keys of all databases.
    fn keys(&self) -> u64 {
        let databases = self.0.iter().filter(|(name, _)| {
            name.strip_prefix("db")
                .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        });
        let keys = databases.filter_map(|(_, value)| {
            let count = value.strip_prefix("keys=")?.split(',').next()?;
            count.parse::<u64>().ok()
        });
        keys.sum()
    }

    fn child(&self) -> &'static str {
        let saves = self.number("rdb_bgsave_in_progress") > 0;
        match (saves, self.number("aof_rewrite_in_progress") > 0) {
            (true, true) => "SAVE+AOF",
            (true, false) => "SAVE",
            (false, true) => "AOF",
            (false, false) => "",
        }
    }

    fn line(&self, requests: u64, more: u64) -> String {
        format!(
            "{:<10} {:<8} {:<7} {:<7} {:<19} {:<12}{}\n",
            self.keys(),
            human(self.number("used_memory")),
            self.number("connected_clients"),
            self.number("blocked_clients"),
            format!("{requests} (+{more})"),
            self.number("total_connections_received"),
            self.child(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_that_of_redis() {
        let info = "# Memory\r\nused_memory:1164000\r\nconnected_clients:1\r\n\
            blocked_clients:0\r\ntotal_connections_received:145\r\n\
            db0:keys=20,expires=0\r\ndb12:keys=8,expires=0\r\ndbfilename:x\r\n";
        assert_eq!(
            Info::read(info).line(3159, 0),
            "28         1.11M    1       0       3159 (+0)           145         \n"
        );
    }
}
