//! Libraries of functions as a payload: FUNCTION DUMP and FUNCTION RESTORE.
//!
//! ```text
//! payload: (| 245 1 | string |) for each library, then version and checksum as behind a value
//! ```

use super::{
    CHECKSUM, Cursor, FOOTER, Format, Forms, Refused, VERSION, check_footer, write_string,
};

/// What stands before each library.
const LIBRARY: u8 = 245;

/// The payload of libraries, each given as its source.
pub fn dump_libraries<'a>(sources: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut forms = Forms::new(Format::Redis8_10, true);
    for source in sources {
        out.push(LIBRARY);
        write_string(&mut out, &mut forms, source);
    }
    out.extend_from_slice(&VERSION.to_le_bytes());
    let sum = CHECKSUM.checksum(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// The sources in a payload; Valkey's, too, where a log is played.
///
/// # Errors
/// [`Refused`] says which half was wrong.
pub fn load_libraries(
    payload: &[u8],
    string_bytes_max: u64,
    is_logged: bool,
) -> Result<Vec<Vec<u8>>, Refused> {
    let end = payload.len().checked_sub(FOOTER).ok_or(Refused::Footer)?;
    let (content, footer) = payload.split_at(end);
    check_footer(payload, footer, is_logged)?;
    let mut from = Cursor::new(content, string_bytes_max);
    let mut sources = Vec::new();
    while !from.source().is_empty() {
        if from.byte().map_err(|_| Refused::Content)? != LIBRARY {
            return Err(Refused::Content);
        }
        sources.push(from.string_owned().map_err(|_| Refused::Content)?);
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dumped_is_loaded() {
        let sources = [b"#!lua name=a\nx".as_slice(), &[b'y'; 20_000]];
        let payload = dump_libraries(sources.iter().copied());
        assert_eq!(load_libraries(&payload, 1 << 20, false).unwrap(), sources);
        assert_eq!(load_libraries(&payload, 100, false), Err(Refused::Content));
        for at in 0..payload.len() {
            let mut broken = payload.clone();
            broken[at] ^= 1;
            assert_eq!(
                load_libraries(&broken, 1 << 20, false),
                Err(Refused::Footer)
            );
            assert!(load_libraries(&payload[..at], 1 << 20, false).is_err());
        }
        let none = dump_libraries(std::iter::empty());
        assert_eq!(load_libraries(&none, 1 << 20, false), Ok(Vec::new()));
    }
}
