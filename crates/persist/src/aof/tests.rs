use super::*;

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

fn summed(bytes: &[u8]) -> Vec<u8> {
    let sum = xxhash_rust::xxh3::xxh3_64(bytes);
    [bytes, format!("#SUM:{sum:016x}\r\n").as_bytes()].concat()
}

fn look_through(bytes: &[u8], until_s: Option<u64>) -> Scan {
    scan(|| Ok(bytes), 0, bytes.len() as u64, until_s).expect("memory does not fail")
}

/// Reads in pieces of `piece` bytes.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.1.min(buf.len()).min(self.0.len());
        buf[..len].copy_from_slice(&self.0[..len]);
        self.0 = &self.0[len..];
        Ok(len)
    }
}

/// All units as text, and the fault.
fn read(bytes: &[u8], piece: usize) -> (Vec<String>, Option<Fault>) {
    let mut reader = Reader::new(Pieces(bytes, piece), 0);
    let mut units = Vec::new();
    loop {
        match reader.next_item() {
            Ok(None) => return (units, None),
            Ok(Some(Item::Timestamp(at))) => units.push(format!("@{at}")),
            Ok(Some(Item::Unit(unit))) => {
                let commands = unit.commands().map(|args| {
                    let words = args.iter().map(String::from_utf8_lossy);
                    words.collect::<Vec<_>>().join(" ")
                });
                units.push(commands.collect::<Vec<_>>().join("; "));
            }
            Err(fault) => return (units, Some(fault)),
        }
    }
}

fn sample() -> Vec<u8> {
    let parts = [
        b"#TS:100\r\n".to_vec(),
        command(&["SELECT", "0"]),
        command(&["SET", "k", "v"]),
        b"#a remark\r\n".to_vec(),
        command(&["MULTI"]),
        command(&["INCR", "n"]),
        b"#TS:101\r\n".to_vec(),
        command(&["LPUSH", "l", "x"]),
        command(&["EXEC"]),
        command(&["DEL", "k"]),
    ];
    parts.concat()
}

#[test]
fn units_come_whole_however_the_file_is_read() {
    let want = ["@100", "SELECT 0", "SET k v", "INCR n; LPUSH l x", "DEL k"];
    for piece in [1, 3, 7, 1000] {
        let (units, fault) = read(&sample(), piece);
        assert_eq!(units, want);
        assert!(fault.is_none());
    }
}

#[test]
fn a_cut_anywhere_leaves_whole_units() {
    let bytes = sample();
    let whole = read(&bytes, 1000).0;
    for cut in 0..bytes.len() {
        let (units, fault) = read(&bytes[..cut], 11);
        assert_eq!(units, whole[..units.len()]);
        let Some(fault) = fault else { continue };
        assert!(fault.is_cut(), "{cut}: {}", fault.reason);
        assert_eq!(
            read(&bytes[..usize::try_from(fault.valid).unwrap()], 11).0,
            units
        );
    }
}

#[test]
fn zeros_after_a_cut_are_a_cut() {
    let bytes = sample();
    for cut in 0..bytes.len() {
        let mut torn = bytes[..cut].to_vec();
        torn.extend_from_slice(&[0; 700]);
        let found = look_through(&torn, None);
        let fault = found.fault.expect("zeros are no command");
        assert!(fault.is_cut(), "{cut}: {} at {}", fault.reason, fault.at);
        let units = read(&bytes[..cut], 1000).0;
        let kept = usize::try_from(found.valid).unwrap();
        assert_eq!(read(&torn[..kept], 1000).0, units, "{cut}");
    }
}

#[test]
fn garbage_is_named_and_not_passed_over() {
    let good = command(&["PING"]);
    for (garbage, want) in [
        (&b"garbage\r\n"[..], "format error"),
        (b"*0\r\n", "format error"),
        (b"*x\r\n", "not a number: 'x'"),
        (b"*1\r\n+OK\r\n", "Expected prefix '$', got: '+'"),
        (b"*1\r\n$-5\r\n", "not a number: '-5'"),
        (b"*1\r\n$1\r\nabc\r\n", "Expected \\r\\n, got: 6263"),
        (b"*1\r\n$4\r\nEXEC\r\n", "Unexpected EXEC"),
        (b"\0\0\0x", "format error"),
    ] {
        let bytes = [&good[..], garbage, &good].concat();
        let (units, fault) = read(&bytes, 1000);
        let fault = fault.expect("it is garbage");
        assert_eq!(units, ["PING"]);
        assert_eq!(fault.reason.to_string(), want);
        assert!(!fault.is_cut());
        assert_eq!(fault.valid, good.len() as u64);
    }
    let nested = [command(&["MULTI"]), command(&["MULTI"])].concat();
    let fault = read(&nested, 1000).1.expect("it is nested");
    assert_eq!((fault.valid, fault.at), (0, 23));
}

#[test]
fn a_lying_length_allocates_nothing() {
    for lie in ["*2147483647\r\n$1\r\na\r\n", "*1\r\n$4000000000\r\nabc"] {
        let mut reader = Reader::new(lie.as_bytes(), 0);
        let fault = reader.next_item().err().expect("it is cut");
        assert!(fault.is_cut());
        assert!(reader.buf.capacity() <= 3 * READ_BYTES);
        assert!(reader.words.capacity() < 100);
    }
    let long = "*1\r\n$18446744073709551615\r\nabc";
    let fault = Reader::new(long.as_bytes(), 0).next_item().err();
    assert!(matches!(
        fault.map(|fault| fault.reason),
        Some(Reason::TooLong)
    ));
}

#[test]
fn a_checksum_finds_every_flipped_bit() {
    let bytes = [summed(&sample()), summed(&command(&["SET", "k", "w"]))].concat();
    assert!(read(&bytes, 1000).1.is_none());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let found = look_through(&flipped, None);
            if found.fault.is_none() {
                // Only a line of a checksum itself may lose its meaning and stay a remark.
                let line = flipped[..at].iter().rposition(|&byte| byte == b'\n');
                let line = line.map_or(0, |end| end + 1);
                assert!(bytes[line..].starts_with(SUM), "{at}.{bit}");
            }
        }
    }
}

#[test]
fn what_follows_a_checksum_without_one_is_taken() {
    let bytes = [summed(&command(&["SET", "k", "v"])), command(&["DEL", "k"])].concat();
    let (units, fault) = read(&bytes, 1000);
    assert_eq!(units, ["SET k v", "DEL k"]);
    assert!(fault.is_none());
}

#[test]
fn a_torn_last_batch_is_a_cut_and_a_flip_in_it_is_not() {
    let first = summed(&command(&["SET", "a", "b"]));
    let value = "x".repeat(2000);
    let second = summed(&command(&["SET", "k", &value]));
    let whole = [first.clone(), second].concat();
    let mut torn = whole.clone();
    torn[512..1024].fill(0);
    let found = look_through(&torn, None);
    let fault = found.fault.expect("it is torn");
    assert!(matches!(fault.reason, Reason::Holes));
    assert_eq!(found.valid, first.len() as u64);
    let mut flipped = whole.clone();
    flipped[600] ^= 1;
    let fault = look_through(&flipped, None).fault;
    assert!(!fault.expect("it was changed").is_cut());
    // A hole with something after it was not the last thing written.
    torn.extend_from_slice(&command(&["PING"]));
    let fault = look_through(&torn, None).fault;
    assert!(!fault.expect("it was changed").is_cut());
}

#[test]
fn times_are_found() {
    let parts = [
        b"#TS:100\r\n".to_vec(),
        command(&["PING"]),
        b"#TS:200\r\n".to_vec(),
        command(&["PING"]),
    ];
    let bytes = parts.concat();
    let past = |until| look_through(&bytes, Some(until)).past;
    assert_eq!(past(50), Some(0));
    assert_eq!(past(100), Some(23));
    assert_eq!(past(199), Some(23));
    assert_eq!(past(200), None);
}

#[test]
fn a_batch_gives_out_what_was_put_in() {
    let transaction = [
        command(&["MULTI"]),
        command(&["SET", "a", "1"]),
        command(&["DEL", "b"]),
        command(&["EXEC"]),
    ];
    let units = [
        command(&["SET", "long", &"v".repeat(2000)]),
        transaction.concat(),
    ];
    let bytes = [&units[0][..], &units[1], &command(&["INCR", "n"])].concat();
    let mut reader = Reader::new(&bytes[..], 0);
    let mut batch = Batch::default();
    loop {
        let at = reader.offset();
        match reader.next_item().expect("a whole file") {
            Some(Item::Unit(unit)) => batch.push(unit, at),
            Some(Item::Timestamp(_)) => {}
            None => break,
        }
    }
    assert_eq!((batch.units(), batch.len_bytes()), (3, bytes.len()));
    let shown = |index| {
        let (args, at) = batch.command(index)?;
        let words: Vec<_> = args
            .iter()
            .map(|word| String::from_utf8_lossy(word))
            .collect();
        Some((words.join(" "), at))
    };
    let seen: Vec<_> = (0..batch.commands()).filter_map(shown).collect();
    let (second, third) = (
        units[0].len() as u64,
        (units[0].len() + units[1].len()) as u64,
    );
    let expected = [
        (format!("SET long {}", "v".repeat(2000)), 0),
        ("SET a 1".to_owned(), second),
        ("DEL b".to_owned(), second),
        ("INCR n".to_owned(), third),
    ];
    assert_eq!(seen, expected);
    assert!(batch.command(4).is_none());
}
