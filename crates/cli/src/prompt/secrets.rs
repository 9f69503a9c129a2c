//! Lines that hold a password: they are not kept in the history.

use crate::words;

/// Whether a line may hold a secret. One whose quotes are wrong is judged all the same.
pub fn holds_secret(line: &str) -> bool {
    let words: Vec<String> = match words::split(line.as_bytes()) {
        Some(words) => words
            .iter()
            .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
            .collect(),
        None => line
            .split_whitespace()
            .map(|word| word.replace(['"', '\''], "").to_ascii_lowercase())
            .collect(),
    };
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    // What comes before the command: how often it runs, or the view that it is shown in.
    while words
        .first()
        .is_some_and(|word| word.parse::<f64>().is_ok() || *word == ":watch")
    {
        words.remove(0);
    }
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    match *name {
        "auth" => !rest.is_empty(),
        "hello" => rest.contains(&"auth"),
        "acl" => rest.first() == Some(&"setuser"),
        "migrate" => rest.contains(&"auth") || rest.contains(&"auth2"),
        "config" => rest.first() == Some(&"set") && rest.iter().any(|word| names_secret(word)),
        "sentinel" => rest.iter().any(|word| names_secret(word)),
        _ => false,
    }
}

/// Settings that are passwords: `requirepass`, `masterauth`, `tls-key-file-pass` and their like.
fn names_secret(word: &str) -> bool {
    ["pass", "auth", "secret"]
        .iter()
        .any(|part| word.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognised() {
        for line in [
            "AUTH secret",
            "auth user secret",
            "3 auth secret",
            ":watch 2 auth secret",
            "\"auth\" \"secret\"",
            "auth \"secret",
            "hello 3 AUTH default secret setname x",
            "ACL SETUSER alice on >secret",
            "migrate h 1 k 0 5000 AUTH secret",
            "migrate h 1 \"\" 0 5000 AUTH2 u secret KEYS k",
            "CONFIG SET requirepass secret",
            "config set maxmemory 1 masterauth secret",
            "config set tls-key-file-pass secret",
            "sentinel set mymaster auth-pass secret",
        ] {
            assert!(holds_secret(line), "{line}");
        }
    }

    #[test]
    fn other_lines_are_kept() {
        for line in [
            "",
            "get auth",
            "config get requirepass",
            "hello 3",
            "acl whoami",
            "auth",
            "3",
        ] {
            assert!(!holds_secret(line), "{line}");
        }
    }
}
