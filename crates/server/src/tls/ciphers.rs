//! Which versions and ciphers are spoken: the words of the directives, as OpenSSL writes them.

use rustls::crypto::ring::cipher_suite::*;
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// Ciphers of version 1.3, the best first.
const OF_TLS13: &[(&str, SupportedCipherSuite)] = &[
    ("TLS_AES_256_GCM_SHA384", TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", TLS13_AES_128_GCM_SHA256),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        TLS13_CHACHA20_POLY1305_SHA256,
    ),
];

/// Ciphers of version 1.2, the best first.
const OF_TLS12: &[(&str, SupportedCipherSuite)] = &[
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// Words of OpenSSL's lists that are no names: all that there is here is within them.
const GROUPS: &[&str] = &[
    "DEFAULT", "ALL", "HIGH", "SECURE", "ECDHE", "EECDH", "AESGCM", "TLSV1.2",
];

/// The ciphers that `tls-ciphers` and `tls-ciphersuites` name; all where they name none.
///
/// # Errors
/// A line for the log where nothing that is named exists.
pub fn suites(ciphers: &[u8], ciphersuites: &[u8]) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut suites =
        named(ciphersuites, OF_TLS13, false).ok_or_else(|| failed("ciphersuites", ciphersuites))?;
    suites.append(&mut named(ciphers, OF_TLS12, true).ok_or_else(|| failed("ciphers", ciphers))?);
    Ok(suites)
}

fn failed(what: &str, text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    format!("Failed to configure {what}: {text}")
}

/// Those of `all` that a list names, in its order. What it leaves out with `!` or orders with `+`
/// are groups that have no part here, so such words say nothing.
fn named(
    list: &[u8],
    all: &[(&str, SupportedCipherSuite)],
    has_groups: bool,
) -> Option<Vec<SupportedCipherSuite>> {
    let everything = || all.iter().map(|(_, suite)| *suite).collect();
    let mut found = Vec::new();
    let mut has_group = list.is_empty();
    for word in words(list) {
        let known = all.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        if let Some((_, suite)) = known {
            found.push(*suite);
        } else if !has_groups {
            return None;
        } else {
            let group = word.trim_start_matches(['!', '-', '+', '@']);
            let is_order = group.len() < word.len();
            let parts = group.split('+');
            let mut parts = parts.map(str::to_ascii_uppercase);
            has_group |= !is_order && parts.all(|part| GROUPS.contains(&part.as_str()));
        }
    }
    match found.is_empty() {
        false => Some(found),
        true if has_group => Some(everything()),
        true => None,
    }
}

/// The versions that `tls-protocols` names; the newest two where it names none.
///
/// # Errors
/// A line for the log.
pub fn versions(protocols: &[u8]) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions = Vec::new();
    for word in words(protocols) {
        match word.to_ascii_lowercase().as_str() {
            "tlsv1.3" => versions.push(&TLS13),
            "tlsv1.2" => versions.push(&TLS12),
            // They are broken, and not there.
            "tlsv1" | "tlsv1.1" => {}
            _ => {
                return Err(
                    "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', \
                     'TLSv1.2' and 'TLSv1.3'."
                        .to_owned(),
                );
            }
        }
    }
    if words(protocols).next().is_none() {
        return Ok(vec![&TLS13, &TLS12]);
    }
    if versions.is_empty() {
        return Err("TLS before version 1.2 is not spoken: see tls-protocols".to_owned());
    }
    Ok(versions)
}

fn words(list: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(list).unwrap_or("?");
    text.split([' ', ':', ',']).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(ciphers: &str, ciphersuites: &str) -> Option<usize> {
        let suites = suites(ciphers.as_bytes(), ciphersuites.as_bytes());
        suites.ok().map(|suites| suites.len())
    }

    #[test]
    fn lists_of_ciphers_are_read_as_openssl_writes_them() {
        assert_eq!(count("", ""), Some(9));
        assert_eq!(count("DEFAULT:!MEDIUM", ""), Some(9));
        assert_eq!(count("ECDHE+AESGCM:@STRENGTH", ""), Some(9));
        assert_eq!(count("ECDHE-RSA-AES128-GCM-SHA256", ""), Some(4));
        assert_eq!(count("AES128-SHA:ECDHE-RSA-AES128-GCM-SHA256", ""), Some(4));
        assert_eq!(count("AES128-SHA", ""), None);
        assert_eq!(count("FOO", ""), None);
        assert_eq!(count("", "TLS_AES_128_GCM_SHA256"), Some(7));
        assert_eq!(
            count("", "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"),
            Some(8)
        );
        assert_eq!(count("", "FOO"), None);
    }

    #[test]
    fn versions_that_are_named_are_spoken() {
        let count = |text: &str| versions(text.as_bytes()).ok().map(|found| found.len());
        assert_eq!(count(""), Some(2));
        assert_eq!(count("TLSv1.2"), Some(1));
        assert_eq!(count("tlsv1.2 TLSv1.3"), Some(2));
        assert_eq!(count("TLSv1 TLSv1.2"), Some(1));
        assert_eq!(count("TLSv1.1"), None);
        assert_eq!(count("FOO"), None);
    }
}
