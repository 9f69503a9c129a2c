//! Where a server is, written as one word: `redis://user:password@host:port/database`.
//!
//! `rediss` is the same over TLS, `unix://path` a socket; Valkey's names mean the same as Redis's.

/// What a URI says; what it leaves out is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uri {
    pub tls: bool,
    pub socket: Option<String>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub db: Option<i64>,
}

/// Reads a URI; the error is a line for people.
pub fn parse(text: &str) -> Result<Uri, String> {
    let (scheme, rest) = text.split_once("://").ok_or("Invalid URI scheme")?;
    let mut uri = Uri::default();
    match scheme {
        "redis" | "valkey" => {}
        "rediss" | "valkeys" => uri.tls = true,
        "unix" | "redis+unix" | "valkey+unix" => {
            let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
            let path = match path.rsplit_once('@') {
                Some((user, path)) => {
                    user_info(user, &mut uri)?;
                    path
                }
                None => path,
            };
            uri.socket = Some(decode(path)?);
            uri.db = query
                .split('&')
                .find_map(|pair| pair.strip_prefix("db="))
                .map(number);
            return Ok(uri);
        }
        _ => return Err("Invalid URI scheme".to_owned()),
    }
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let rest = match rest.rsplit_once('@') {
        Some((user, rest)) => {
            user_info(user, &mut uri)?;
            rest
        }
        None => rest,
    };
    let (place, db) = rest.split_once('/').unwrap_or((rest, ""));
    if !db.is_empty() {
        uri.db = Some(number(db));
    }
    let (host, port) = match place.strip_prefix('[') {
        Some(after) => {
            let (host, port) = after.split_once(']').ok_or("Invalid URI host")?;
            (host, port.strip_prefix(':').unwrap_or(port))
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    if !host.is_empty() {
        uri.host = Some(decode(host)?);
    }
    if !port.is_empty() {
        uri.port = Some(port.parse().map_err(|_| "Invalid URI port")?);
    }
    Ok(uri)
}

/// `user:password`, or a password alone. The user before a colon may be left out.
fn user_info(text: &str, uri: &mut Uri) -> Result<(), String> {
    match text.split_once(':') {
        Some((user, password)) => {
            uri.user = Some(decode(user)?).filter(|user| !user.is_empty());
            uri.password = Some(decode(password)?);
        }
        None => uri.password = Some(decode(text)?),
    }
    Ok(())
}

fn number(text: &str) -> i64 {
    crate::options::leading_integer(text)
}

fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let pair = after
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        let value = pair
            .filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(value.ok_or("Incomplete URI encoding")?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| "Invalid URI encoding".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read() {
        assert_eq!(
            parse("rediss://al%69ce:p%40ss@example.org:7000/3"),
            Ok(Uri {
                tls: true,
                host: Some("example.org".into()),
                port: Some(7000),
                user: Some("alice".into()),
                password: Some("p@ss".into()),
                db: Some(3),
                socket: None,
            })
        );
        let v6 = parse("redis://[::1]:7000").expect("a URI");
        assert_eq!((v6.host.as_deref(), v6.port), (Some("::1"), Some(7000)));
        let socket = parse("unix:///run/redis.sock?db=2").expect("a URI");
        assert_eq!(socket.socket.as_deref(), Some("/run/redis.sock"));
        assert_eq!(socket.db, Some(2));
        let bare = parse("redis://:secret@").expect("a URI");
        assert_eq!((bare.user, bare.password), (None, Some("secret".into())));
        assert_eq!(parse("redis://"), Ok(Uri::default()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for text in [
            "http://x",
            "host:1",
            "redis://a%4@x",
            "redis://x:99999",
            "redis://[::1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
