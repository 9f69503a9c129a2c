//! The tests by name: what each is called and what it sends.

use super::options::Options;
use crate::load::random::Random;
use std::io::Read;

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What the report calls it.
    pub title: String,
    /// One request of it.
    pub bytes: Vec<u8>,
}

/// Bytes of standard input that `-x` takes at most.
const STDIN_BYTES_MAX: u64 = 512 << 20;

/// What `-t` may name, what the report calls it, and its command; `@` stands for the payload.
/// Tests with several names are chosen by any of them.
const ROWS: &[(&[&str], &str, &str)] = &[
    (&["ping_inline", "ping"], "PING_INLINE", ""),
    (&["ping_mbulk", "ping"], "PING_MBULK", "PING"),
    (&["set"], "SET", "SET key:__rand_int__ @"),
    (&["get"], "GET", "GET key:__rand_int__"),
    (&["incr"], "INCR", "INCR counter:__rand_int__"),
    (&["lpush"], "LPUSH", "LPUSH mylist @"),
    (&["rpush"], "RPUSH", "RPUSH mylist @"),
    (&["lpop"], "LPOP", "LPOP mylist"),
    (&["rpop"], "RPOP", "RPOP mylist"),
    (&["sadd"], "SADD", "SADD myset element:__rand_int__"),
    (&["hset"], "HSET", "HSET myhash element:__rand_int__ @"),
    (&["spop"], "SPOP", "SPOP myset"),
    (&["zadd"], "ZADD", "ZADD myzset @score element:__rand_int__"),
    (&["zpopmin"], "ZPOPMIN", "ZPOPMIN myzset"),
    (
        &[
            "lrange",
            "lrange_100",
            "lrange_300",
            "lrange_500",
            "lrange_600",
        ],
        "LPUSH (needed to benchmark LRANGE)",
        "LPUSH mylist @",
    ),
    (
        &["lrange_100", "lrange"],
        "LRANGE_100 (first 100 elements)",
        "LRANGE mylist 0 99",
    ),
    (
        &["lrange_300", "lrange"],
        "LRANGE_300 (first 300 elements)",
        "LRANGE mylist 0 299",
    ),
    (
        &["lrange_500", "lrange"],
        "LRANGE_500 (first 500 elements)",
        "LRANGE mylist 0 499",
    ),
    (
        &["lrange_600", "lrange"],
        "LRANGE_600 (first 600 elements)",
        "LRANGE mylist 0 599",
    ),
    (&["mset"], "MSET (10 keys)", MSET),
    (&["xadd"], "XADD", "XADD mystream * myfield @"),
    (&["publish"], PUBLISH, "PUBLISH mychannel @"),
];
/// The one that is run only where it is named.
const PUBLISH: &str = "PUBLISH";
const MSET: &str = "MSET key:__rand_int__ @ key:__rand_int__ @ key:__rand_int__ @ \
     key:__rand_int__ @ key:__rand_int__ @ key:__rand_int__ @ key:__rand_int__ @ \
     key:__rand_int__ @ key:__rand_int__ @ key:__rand_int__ @";

/// One request of the test that is called so, with keys and members to be drawn.
pub fn request_of(test: &str, data_bytes: usize) -> Option<Vec<u8>> {
    let test = test.to_ascii_lowercase();
    // The LPUSH that LRANGE needs has only names of others.
    let row = ROWS
        .iter()
        .find(|(names, ..)| names.first() == Some(&test.as_str()) && test != "lrange");
    row.map(|(_, _, command)| bytes_of(command, &payload(data_bytes), true))
}

/// The tests that `-t` chooses, all but one without it.
pub fn selected(options: &Options) -> Vec<Row> {
    let data = payload(options.data_bytes);
    let is_chosen = |names: &[&str], title: &str| match &options.tests {
        None => title != PUBLISH,
        Some(tests) => tests.iter().any(|test| names.contains(&test.as_str())),
    };
    ROWS.iter()
        .filter(|(names, title, _)| is_chosen(names, title))
        .map(|(_, title, command)| Row {
            title: (*title).to_owned(),
            bytes: bytes_of(command, &data, options.range.is_some()),
        })
        .collect()
}

fn bytes_of(command: &str, data: &[u8], is_random: bool) -> Vec<u8> {
    if command.is_empty() {
        return b"PING\r\n".to_vec();
    }
    let args: Vec<&[u8]> = command
        .split_whitespace()
        .map(|word| match word {
            "@" => data,
            "@score" if is_random => b"__rand_int__",
            "@score" => b"0",
            _ => word.as_bytes(),
        })
        .collect();
    let mut bytes = Vec::new();
    client::encode(&args, &mut bytes);
    bytes
}

/// The test of the command that the user gave, if one was given; with `-x` its last argument is
/// what standard input has.
pub fn of_command(options: &Options, stdin: &mut impl Read) -> Result<Option<Row>, String> {
    if options.command.is_empty() {
        return Ok(None);
    }
    let mut args: Vec<Vec<u8>> = options
        .command
        .iter()
        .map(|arg| arg.clone().into())
        .collect();
    if options.reads_stdin {
        let mut last = Vec::new();
        stdin
            .take(STDIN_BYTES_MAX)
            .read_to_end(&mut last)
            .map_err(|error| format!("standard input: {error}"))?;
        args.push(last);
    }
    let mut bytes = Vec::new();
    client::encode(&args, &mut bytes);
    Ok(Some(Row {
        title: options.command.join(" "),
        bytes,
    }))
}

/// Letters, the same in every run.
pub fn payload(bytes: usize) -> Vec<u8> {
    let mut random = Random::new(1);
    let letter = |number: u64| b'A' + u8::try_from(number).expect("below 26");
    (0..bytes).map(|_| letter(random.below(26))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::options::parse;

    fn titles(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let rows = selected(&parse(&words).expect("options"));
        rows.into_iter().map(|row| row.title).collect()
    }

    #[test]
    fn tests_are_chosen_by_their_names() {
        assert_eq!(
            titles("x -t ping,GET"),
            ["PING_INLINE", "PING_MBULK", "GET"]
        );
        assert_eq!(
            titles("x -t lrange_300"),
            [
                "LPUSH (needed to benchmark LRANGE)",
                "LRANGE_300 (first 300 elements)"
            ]
        );
        assert_eq!(titles("x -t publish,nothing"), ["PUBLISH"]);
        assert_eq!(titles("x").len(), ROWS.len() - 1);
    }
}
