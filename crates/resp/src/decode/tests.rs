//! The decoder against whole inputs, and against the same inputs cut at every byte.

use super::*;

const LIMITS: Limits = Limits {
    bulk_bytes_max: 512 << 20,
    authenticated: true,
};

/// Feeds `input` in pieces of `step` bytes and returns all requests, or the error.
fn feed(input: &[u8], step: usize, limits: Limits) -> (Vec<Vec<Vec<u8>>>, Option<String>) {
    let (mut decoder, mut batch) = (Decoder::default(), Batch::default());
    let (mut buf, mut seen) = (Vec::new(), Vec::new());
    for piece in input.chunks(step) {
        buf.extend_from_slice(piece);
        loop {
            batch.clear();
            match decoder.decode(&buf, limits, 3, &mut batch) {
                Ok(used) => {
                    for index in 0..batch.len() {
                        seen.push(batch.args(index, &buf).iter().map(<[u8]>::to_vec).collect());
                    }
                    buf.drain(..used);
                    if used == 0 {
                        break;
                    }
                }
                Err(error) => return (seen, Some(error.0)),
            }
        }
    }
    (seen, None)
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn reads_requests_cut_anywhere() {
    let long = "x".repeat(70_000);
    let input = format!(
        "*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*0\r\n*-1\r\n\r\n*1\r\n$70000\r\n{long}\r\n\
         SET \"a b\\x41\\n\" 'it\\'s'\n*3\r\n$3\r\nSET\r\n$0\r\n\r\n$12\r\nhello\r\nworld\r\n"
    );
    let want = vec![
        words(&["GET", "k"]),
        words(&["PING"]),
        words(&[&long]),
        words(&["SET", "a bA\n", "it's"]),
        words(&["SET", "", "hello\r\nworld"]),
    ];
    for step in [1, 2, 3, 7, 64, 1000, input.len()] {
        assert_eq!(
            feed(input.as_bytes(), step, LIMITS),
            (want.clone(), None),
            "step {step}"
        );
    }
}

#[test]
fn says_what_is_wrong() {
    let closed = Limits {
        authenticated: false,
        ..LIMITS
    };
    let long = "a".repeat(LINE_BYTES_MAX + 2);
    for (input, limits, want) in [
        ("*x\r\n", LIMITS, "invalid multibulk length"),
        ("*2147483648\r\n", LIMITS, "invalid multibulk length"),
        ("*-0\r\n", LIMITS, "invalid multibulk length"),
        (
            "*-9223372036854775809\r\n",
            LIMITS,
            "invalid multibulk length",
        ),
        ("*1\r\n+OK\r\n", LIMITS, "expected '$', got '+'"),
        ("*1\r\n$-1\r\n", LIMITS, "invalid bulk length"),
        ("*1\r\n$x\r\n", LIMITS, "invalid bulk length"),
        ("*1\r\n$536870913\r\n", LIMITS, "invalid bulk length"),
        ("*11\r\n", closed, "unauthenticated multibulk length"),
        ("*1\r\n$16385\r\n", closed, "unauthenticated bulk length"),
        ("a \"b\r\n", LIMITS, "unbalanced quotes in request"),
        ("a \"b\"c\r\n", LIMITS, "unbalanced quotes in request"),
        (&long, LIMITS, "too big inline request"),
        (&format!("*{long}"), LIMITS, "too big mbulk count string"),
        (
            &format!("*1\r\n${long}"),
            LIMITS,
            "too big bulk count string",
        ),
    ] {
        for step in [if input.len() > 100 { 999 } else { 1 }, input.len()] {
            assert_eq!(
                feed(input.as_bytes(), step, limits).1.as_deref(),
                Some(want)
            );
        }
    }
}

#[test]
fn a_negative_count_is_no_request() {
    let (seen, error) = feed(b"*-9223372036854775808\r\n*-1\r\n*0\r\nPING\r\n", 1, LIMITS);
    assert_eq!((seen, error), (vec![words(&["PING"])], None));
}

#[test]
fn a_line_does_not_end_behind_a_zero_byte() {
    let (seen, error) = feed(b"PING\r\nA\x00B\r\nPING\r\n", 100, LIMITS);
    assert_eq!((seen, error), (vec![words(&["PING"])], None));
    let long = [b"PING\r\n\0\r\n".as_slice(), &[b'a'; LINE_BYTES_MAX]].concat();
    let (seen, error) = feed(&long, 999, LIMITS);
    assert_eq!(seen, [words(&["PING"])]);
    assert_eq!(error.as_deref(), Some("too big inline request"));
}

#[test]
fn a_vertical_tab_stands_between_words_and_ends_none() {
    let input = b"\x0bPING \x0b\x0c\r\nGET\x0ba b\x0c\r\nPING \"a\"\x0bb\r\n";
    let (seen, error) = feed(input, 100, LIMITS);
    let want = [
        words(&["PING"]),
        words(&["GET\x0ba", "b\x0c"]),
        words(&["PING", "a", "b"]),
    ];
    assert_eq!((seen.as_slice(), error), (want.as_slice(), None));
}

#[test]
fn requests_before_a_broken_one_are_delivered() {
    let (seen, error) = feed(b"PING\r\n*1\r\n!\r\n", 100, LIMITS);
    assert_eq!(seen, [words(&["PING"])]);
    assert_eq!(error.as_deref(), Some("expected '$', got '!'"));
}

proptest::proptest! {
    #[test]
    fn any_bytes_read_the_same_in_any_slices(
        input in proptest::collection::vec(
            proptest::prop_oneof![
                proptest::sample::select(b"*$\r\n0123456789-ab \"'\\x".to_vec()),
                proptest::num::u8::ANY,
            ],
            0..200,
        ),
        step in 1usize..20,
    ) {
        let whole = feed(&input, input.len().max(1), LIMITS);
        let sliced = feed(&input, step, LIMITS);
        // An error in the first piece may come before requests in later ones; never after.
        proptest::prop_assert_eq!(whole, sliced);
    }
}

#[test]
fn says_how_much_of_a_word_is_to_come() {
    let whole = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$70000\r\n";
    let (mut decoder, mut batch) = (Decoder::default(), Batch::default());
    for len in 0..whole.len() + 10 {
        let mut buf = whole.to_vec();
        buf.resize(whole.len().max(len), b'x');
        decoder.reset();
        batch.clear();
        let before = b"PING\r\n";
        let buf = [&before[..], &buf[..len]].concat();
        let used = decoder.decode(&buf, LIMITS, 9, &mut batch).unwrap();
        assert_eq!(used, before.len());
        let needed = match len {
            // The length of the last word has come.
            _ if len >= whole.len() => whole.len() + 70_000 + 2,
            // Of a word that is cut off itself.
            8..13 => 13,
            17..20 => 20,
            _ => 0,
        };
        assert_eq!(decoder.needed(), needed, "after {len} bytes");
    }
}

#[test]
fn the_second_word_is_seen_where_it_is_whole() {
    let request = b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n";
    assert_eq!(likely_key(request), Some(&b"key:000000000001"[..]));
    for len in 0..request.len() - 2 {
        assert_eq!(likely_key(&request[..len]), None, "after {len} bytes");
    }
    let others: [&[u8]; 4] = [
        b"*1\r\n$4\r\nPING\r\n",
        b"GET key\r\n",
        b"*2\r\n$3\r\nGET\r\n$-1\r\nkey",
        b"*2\r\n$99\r\nGET\r\n$3\r\nkey\r\n",
    ];
    for other in others {
        assert_eq!(likely_key(other), None);
    }
}
