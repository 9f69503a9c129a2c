//! Passwords: kept and compared as SHA-256 digests.

use sha2::{Digest as _, Sha256};

/// The digest of a password.
#[derive(Clone, Copy, Debug)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a password in plain text.
    pub fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// The digest written as 64 lower-case hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// As [`Digest::parse`] reads it.
    pub fn show(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether both are the same. How long it takes says nothing about where they differ.
    pub fn is(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        let difference = pairs.fold(0, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_as_it_is_shown() {
        let digest = Digest::of(b"pw");
        let text = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
        assert_eq!(digest.show(), text);
        assert!(Digest::parse(text.as_bytes()).is_some_and(|read| read.is(&digest)));
        assert!(!digest.is(&Digest::of(b"pW")));
        assert!(Digest::parse(&text.as_bytes()[1..]).is_none());
        assert!(Digest::parse(text.to_uppercase().as_bytes()).is_none());
    }
}
