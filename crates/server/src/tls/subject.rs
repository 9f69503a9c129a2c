//! The common name of a certificate: enough of DER to find it, and no more.
//!
//! ```text
//! Certificate { TBS { [0] version?, serial, algorithm, issuer, validity, subject, ... }, ... }
//! subject { set { sequence { OID, string } ... } ... }
//! ```
//!
//! The certificate was verified before, so it is well formed; what is not has no name.

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const VERSION: u8 = 0xa0;
/// UTF8String, PrintableString, TeletexString, IA5String: bytes as they are.
const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The first common name of a certificate's subject.
pub fn common_name(certificate: &[u8]) -> Option<&[u8]> {
    let (content, _) = element(certificate, SEQUENCE)?;
    let (mut rest, _) = element(content, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest, VERSION)?.1;
    }
    // Serial number, algorithm, issuer and validity.
    for _ in 0..4 {
        rest = any(rest)?.2;
    }
    let (mut names, _) = element(rest, SEQUENCE)?;
    while !names.is_empty() {
        let (mut set, others) = element(names, SET)?;
        names = others;
        while !set.is_empty() {
            let (name, more) = element(set, SEQUENCE)?;
            set = more;
            let (kind, value) = element(name, OID)?;
            if kind == COMMON_NAME {
                let (tag, text, _) = any(value)?;
                return TEXTS.contains(&tag).then_some(text);
            }
        }
    }
    None
}

/// The content of the element at the front, which must have this tag, and what follows it.
fn element(data: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(data)?;
    (found == tag).then_some((content, rest))
}

/// The tag and the content of the element at the front, and what follows it.
fn any(data: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = data.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let len = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x84 => {
            let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            digits
                .iter()
                .fold(0usize, |len, &digit| len << 8 | usize::from(digit))
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let len = u8::try_from(content.len()).expect("a short element");
        let mut data = match len {
            0..=0x7f => vec![tag, len],
            _ => vec![tag, 0x81, len],
        };
        data.extend_from_slice(&content);
        data
    }

    fn certificate(with_version: bool, subject: &[u8]) -> Vec<u8> {
        let version = wrap(VERSION, &[&wrap(0x02, &[&[2]])]);
        let version: &[u8] = if with_version { &version } else { &[] };
        let (serial, empty) = (wrap(0x02, &[&[1]]), wrap(SEQUENCE, &[]));
        let issuer = wrap(SEQUENCE, &[&attribute(3, 0x0c, b"issuer")]);
        let parts = [version, &serial, &empty, &issuer, &empty, subject, &empty];
        wrap(SEQUENCE, &[&wrap(SEQUENCE, &parts), &empty])
    }

    fn attribute(kind: u8, tag: u8, text: &[u8]) -> Vec<u8> {
        let kind = wrap(OID, &[&[0x55, 0x04, kind]]);
        wrap(SET, &[&wrap(SEQUENCE, &[&kind, &wrap(tag, &[text])])])
    }

    #[test]
    fn the_first_common_name_of_the_subject_is_found() {
        let long = [b'x'; 100];
        let names = [
            attribute(10, 0x13, b"an organisation"),
            attribute(3, 0x0c, &long),
            attribute(3, 0x0c, b"second"),
        ];
        let subject = wrap(SEQUENCE, &[&names[0], &names[1], &names[2]]);
        for with_version in [false, true] {
            let certificate = certificate(with_version, &subject);
            assert_eq!(common_name(&certificate), Some(&long[..]));
        }
        let nameless = wrap(SEQUENCE, &[&names[0]]);
        assert_eq!(common_name(&certificate(true, &nameless)), None);
        let wide = wrap(SEQUENCE, &[&attribute(3, 0x1e, b"\0a")]);
        assert_eq!(common_name(&certificate(true, &wide)), None);
    }

    #[test]
    fn damage_is_no_name() {
        let subject = wrap(SEQUENCE, &[&attribute(3, 0x0c, b"name")]);
        let whole = certificate(true, &subject);
        for len in 0..whole.len() {
            assert_eq!(common_name(&whole[..len]), None);
        }
        for at in 0..whole.len() {
            for byte in [0, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = common_name(&damaged);
            }
        }
    }
}
