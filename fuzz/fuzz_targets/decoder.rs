//! The request decoder: any bytes, cut anywhere, give the same requests and the same error.
//!
//! The first bytes of the input say where to cut the rest. Decoding whole and decoding in pieces
//! must agree on every request and on whether, and why, the connection ends.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use resp::{Batch, Decoder, Limits};

const CUTS: usize = 8;

type Requests = Vec<Vec<Vec<u8>>>;

/// A connection: bytes come in, whole requests go out.
struct Connection {
    decoder: Decoder,
    limits: Limits,
    buf: Vec<u8>,
    requests: Requests,
    error: Option<String>,
}

impl Connection {
    fn new(limits: Limits) -> Self {
        let (buf, requests) = (Vec::new(), Vec::new());
        Self {
            decoder: Decoder::default(),
            limits,
            buf,
            requests,
            error: None,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
        let mut batch = Batch::default();
        while self.error.is_none() {
            batch.clear();
            match self.decoder.decode(&self.buf, self.limits, 3, &mut batch) {
                Ok(taken) => {
                    for index in 0..batch.len() {
                        let args = batch.args(index, &self.buf);
                        self.requests
                            .push(args.iter().map(<[u8]>::to_vec).collect());
                    }
                    assert!(taken <= self.buf.len());
                    self.buf.drain(..taken);
                    if taken == 0 {
                        return;
                    }
                }
                Err(error) => self.error = Some(error.0),
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let limits = Limits {
        bulk_bytes_max: 1 << 20,
        authenticated: input.byte() % 4 != 0,
    };
    let cuts: Vec<usize> = (0..CUTS).map(|_| usize::from(input.byte())).collect();
    let mut rest = input.rest();

    let mut whole = Connection::new(limits);
    whole.feed(rest);

    let mut pieces = Connection::new(limits);
    for cut in cuts {
        let (piece, after) = rest.split_at(cut.min(rest.len()));
        pieces.feed(piece);
        rest = after;
    }
    for byte in rest {
        pieces.feed(&[*byte]);
    }
    assert_eq!(whole.requests, pieces.requests);
    assert_eq!(whole.error, pieces.error);
});
