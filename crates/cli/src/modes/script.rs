//! `--eval`: a script from a file, with its keys and arguments.

use crate::command::{Repeat, Runner};
use crate::options::Options;
use crate::out::{Failure, Outcome, io_text};
use std::ffi::OsStr;

/// Runs the script. Of the words after the file, those before a lone comma are keys.
pub fn run(runner: &mut Runner, options: &Options, file: &OsStr) -> Outcome {
    let script = std::fs::read(file).map_err(|error| {
        let name = file.to_string_lossy();
        Failure::Line(format!("Can't open file '{name}': {}", io_text(&error)))
    })?;
    runner.repeat(&call(script, options.words()), Repeat::new(options))
}

fn call(script: Vec<u8>, words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let comma = words.iter().position(|word| word == b",");
    let keys = comma.unwrap_or(words.len());
    let mut call = vec![b"EVAL".to_vec(), script, keys.to_string().into_bytes()];
    for (at, word) in words.into_iter().enumerate() {
        if Some(at) != comma {
            call.push(word);
        }
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_comma_parts_keys_from_arguments() {
        let words = |text: &str| {
            text.split(' ')
                .map(|word| word.into())
                .collect::<Vec<Vec<u8>>>()
        };
        assert_eq!(
            call(b"s".to_vec(), words("a b , c")),
            words("EVAL s 2 a b c")
        );
        assert_eq!(call(b"s".to_vec(), words("a b")), words("EVAL s 2 a b"));
        assert_eq!(
            call(b"s".to_vec(), words(", c , d")),
            words("EVAL s 0 c , d")
        );
    }
}
