//! What is played: commands on numbered connections, fixed before the first is sent.
//!
//! A sequence depends on its seed alone and never on a reply, so that it can be played again with
//! some of its commands left out. What only a reply can tell (the id that XADD made up, what DUMP
//! gave) stands as a reference to the n-th such reply.

use testkit::write_quoted;

/// What replies are kept for later words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    /// A stream id that the server made: each side has its own.
    Id,
    /// What DUMP gave: the real server's is sent to both.
    Payload,
    /// What DIGEST gave: the real server's is sent to both.
    Digest,
    /// The name of a script that SCRIPT LOAD gave.
    Script,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Word {
    Plain(Vec<u8>),
    /// The n-th reply of its kind, counted round where there are fewer.
    Reply(Seen, usize),
}

impl Word {
    /// The bytes of a word that is no reference.
    pub fn plain(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(bytes) => Some(bytes),
            Self::Reply(..) => None,
        }
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Word {
    fn from(bytes: &T) -> Self {
        Self::Plain(bytes.as_ref().to_vec())
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self::Plain(text.into_bytes())
    }
}

/// One command on one connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    pub connection: usize,
    pub words: Vec<Word>,
    /// If it blocks, its own short timeout is waited for.
    pub is_brief: bool,
}

impl Step {
    /// A command without anything special about it.
    pub fn new(connection: usize, words: &[&str]) -> Self {
        Self {
            connection,
            words: words.iter().map(|word| Word::from(*word)).collect(),
            is_brief: false,
        }
    }
}

/// Commands in their order, and what is configured before the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequence {
    pub config: Vec<(&'static str, &'static str)>,
    pub steps: Vec<Step>,
}

/// What has to be undone beside the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    pub has_users: bool,
    pub has_scripts: bool,
}

impl Sequence {
    /// Looks for commands that leave more than data behind.
    pub fn traits(&self) -> Traits {
        let has = |names: &[&str]| {
            self.steps.iter().any(|step| {
                let name = step.words.first().and_then(Word::plain).unwrap_or_default();
                names
                    .iter()
                    .any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
            })
        };
        Traits {
            has_users: has(&["acl", "auth"]),
            has_scripts: has(&["script", "function", "eval", "eval_ro", "evalsha", "fcall"]),
        }
    }
}

/// The letter of a connection in scripts; the first has none.
pub fn letter(connection: usize) -> String {
    match u8::try_from(connection) {
        Ok(0) | Err(_) => String::new(),
        Ok(number) => char::from(b'a' + (number - 1) % 26).to_string(),
    }
}

/// A command as a person types it.
pub fn line<'a>(words: impl Iterator<Item = &'a [u8]>) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        let is_bare = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\{}".contains(byte);
        if let Some((unit, count)) = repeated(word) {
            line.push_str(&format!("{{{unit}*{count}}}"));
            continue;
        }
        match !word.is_empty() && word.iter().all(is_bare) {
            true => line.push_str(&String::from_utf8_lossy(word)),
            false => write_quoted(word, &mut line),
        }
    }
    line
}

/// A long text that is one of up to three letters over and over, as scripts write it.
fn repeated(word: &[u8]) -> Option<(&str, usize)> {
    (1..=3).find_map(|size| {
        let unit = word
            .get(..size)
            .filter(|unit| unit.iter().all(u8::is_ascii_alphanumeric))?;
        let is_all = word.len() > 40 && word.len().is_multiple_of(size);
        (is_all && word.chunks(size).all(|chunk| chunk == unit)).then(|| {
            (
                std::str::from_utf8(unit).unwrap_or_default(),
                word.len() / size,
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_shown_short() {
        assert_eq!(
            line([&b"ab".repeat(50)[..], b"aaa"].into_iter()),
            "{ab*50} aaa"
        );
    }

    #[test]
    fn lines_are_read_back_as_they_were() {
        let words: Vec<&[u8]> = vec![b"SET", b"", b" a", b"\x00\xff", b"it's", b"x=1", b"\\"];
        let line = line(words.iter().copied());
        assert_eq!(testkit::split(&line).expect("a good line"), words);
    }

    #[test]
    fn the_first_connection_has_no_letter() {
        assert_eq!(letter(0), "");
        assert_eq!(letter(1), "a");
    }
}
