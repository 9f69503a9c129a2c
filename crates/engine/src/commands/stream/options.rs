//! Options that several stream commands share: how far to trim, and what becomes of references.

use resp::Args;
use structure::stream::{References, Stream, Threshold};

use super::id;
use crate::{CommandError, Context, number};

/// KEEPREF, DELREF or ACKED.
pub(super) fn references(word: &[u8]) -> Option<References> {
    [
        ("KEEPREF", References::Keep),
        ("DELREF", References::Delete),
        ("ACKED", References::Acknowledged),
    ]
    .into_iter()
    .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
    .map(|(_, references)| references)
}

/// The word that [`references`] reads; none where nothing needs to be said, so that servers which
/// do not know the word can play the log.
pub(super) fn references_word(references: References) -> Option<&'static [u8]> {
    match references {
        References::Keep => None,
        References::Delete => Some(b"DELREF"),
        References::Acknowledged => Some(b"ACKED"),
    }
}

/// How far a stream is to be trimmed, as far as the words have said.
#[derive(Default)]
pub(super) struct Trim {
    threshold: Option<Threshold>,
    approximate: bool,
    limit: Option<u64>,
    references: Option<References>,
}

impl Trim {
    /// Whether there is anything to trim to.
    pub(super) fn is_asked(&self) -> bool {
        self.threshold.is_some()
    }

    /// Reads the option at `at`: how many words it takes, or none where it is no trimming option.
    pub(super) fn parse(&mut self, args: Args<'_>, at: usize) -> Result<usize, CommandError> {
        let more = args.len() - at - 1;
        if let Some(references) = references(args.at(at)) {
            if self.references.is_some() {
                return Ok(0);
            }
            self.references = Some(references);
            return Ok(1);
        }
        let by_length = args.is(at, "MAXLEN");
        if more > 0 && (by_length || args.is(at, "MINID")) {
            if self.threshold.is_some() {
                return Err(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
                        .into(),
                );
            }
            let operator = more > 1 && matches!(args.at(at + 1), b"=" | b"~");
            self.approximate = operator && args.at(at + 1) == b"~";
            let value = args.at(at + 1 + usize::from(operator));
            self.threshold = Some(if by_length {
                let length = u64::try_from(number::int(value)?);
                Threshold::Length(
                    length
                        .map_err(|_| CommandError::text("ERR The MAXLEN argument must be >= 0."))?,
                )
            } else {
                Threshold::Id(id::parse(value, 0)?)
            });
            return Ok(2 + usize::from(operator));
        }
        if more > 0 && args.is(at, "LIMIT") {
            let limit = u64::try_from(number::int(args.at(at + 1))?);
            self.limit = Some(
                limit.map_err(|_| CommandError::text("ERR The LIMIT argument must be >= 0."))?,
            );
            return Ok(2);
        }
        Ok(0)
    }

    /// Checks what only all words together can tell.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        match self.limit {
            Some(_) if self.threshold.is_none() => Err(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
                    .into(),
            ),
            Some(_) if !self.approximate => {
                Err("ERR syntax error, LIMIT cannot be used without the special ~ option".into())
            }
            _ => Ok(()),
        }
    }

    /// The most entries that one approximate trimming removes unless told: a hundred blocks.
    pub(super) fn limit_default(cx: &Context<'_>) -> u64 {
        const LIMIT: u64 = 10_000;
        match cx.settings.stream_node_entries as u64 {
            0 => LIMIT,
            entries => entries.saturating_mul(100),
        }
    }

    /// Trims; answers how many entries went.
    pub(super) fn apply(&self, stream: &mut Stream, limit_default: u64) -> u64 {
        let Some(threshold) = self.threshold else {
            return 0;
        };
        let limit = match self.approximate {
            true => self.limit.unwrap_or(limit_default),
            false => 0,
        };
        stream.trim(threshold, self.approximate, limit, self.references())
    }

    /// What becomes of references.
    pub(super) fn references(&self) -> References {
        self.references.unwrap_or_default()
    }
}
