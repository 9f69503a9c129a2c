//! ACL LOG: what was refused to whom, the newest first, and how often in all.
//!
//! # Invariant
//! - Beside a change of `acllog-max-len`, there are at most so many refusals, and a word of a
//!   refusal is kept up to [`WORD_BYTES_MAX`] bytes only, so that nobody fills memory with it.

use std::collections::VecDeque;

/// Refusals among which a new one is looked for.
const LIKE_MAX: usize = 10;
/// Milliseconds for which like refusals are counted together.
const TOGETHER_MS: u64 = 60_000;
/// Bytes that are kept of a key, a channel or a user's name.
const WORD_BYTES_MAX: usize = 1024;

/// What was refused, and how often.
#[derive(Default)]
pub struct Log {
    refusals: VecDeque<Refusal>,
    next: u64,
    /// What was refused since the start, by its kind.
    pub counts: Counts,
}

/// How often what was refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Logins.
    pub auth: u64,
    /// Commands.
    pub command: u64,
    /// Keys.
    pub key: u64,
    /// Channels.
    pub channel: u64,
    /// Users that certificates name.
    pub certificate: u64,
}

/// Something that was refused, once or several times.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// How often.
    pub count: u64,
    /// `command`, `key`, `channel`, `database`, `auth` or `tls-cert`.
    pub reason: &'static str,
    /// `toplevel`, `multi` or `lua`.
    pub context: &'static str,
    /// The command, the key or the channel.
    pub object: Vec<u8>,
    /// Who was refused.
    pub user: Vec<u8>,
    /// The client as CLIENT INFO describes it, the last time.
    pub client: Vec<u8>,
    /// Its number.
    pub number: u64,
    /// Unix milliseconds of the first time.
    pub first_ms: u64,
    /// Unix milliseconds of the last time.
    pub last_ms: u64,
}

impl Log {
    /// Adds a refusal at `now_ms`, keeping at most `len_max`.
    pub fn note(
        &mut self,
        (reason, context): (&'static str, &'static str),
        object: &[u8],
        user: &[u8],
        client: Vec<u8>,
        now_ms: u64,
        len_max: usize,
    ) {
        let counts = &mut self.counts;
        match reason {
            "auth" => counts.auth += 1,
            "command" => counts.command += 1,
            "key" => counts.key += 1,
            "channel" => counts.channel += 1,
            "tls-cert" => counts.certificate += 1,
            _ => {}
        }
        if len_max == 0 {
            self.refusals.clear();
            return;
        }
        let object = &object[..object.len().min(WORD_BYTES_MAX)];
        let user = &user[..user.len().min(WORD_BYTES_MAX)];
        let is_like = |known: &Refusal| {
            (known.reason, known.context) == (reason, context)
                && known.object == object
                && known.user == user
                && now_ms.saturating_sub(known.last_ms) <= TOGETHER_MS
        };
        let like = self.refusals.iter().take(LIKE_MAX).position(is_like);
        if let Some(mut known) = like.and_then(|at| self.refusals.remove(at)) {
            known.count += 1;
            known.last_ms = now_ms;
            known.client = client;
            self.refusals.push_front(known);
            return;
        }
        self.refusals.push_front(Refusal {
            count: 1,
            reason,
            context,
            object: object.to_vec(),
            user: user.to_vec(),
            client,
            number: self.next,
            first_ms: now_ms,
            last_ms: now_ms,
        });
        self.next += 1;
        self.refusals.truncate(len_max);
    }

    /// The newest refusals, at most so many.
    pub fn newest(&self, count: usize) -> Vec<Refusal> {
        self.refusals.iter().take(count).cloned().collect()
    }

    /// Forgets all refusals; the counts stay.
    pub fn clear(&mut self) {
        self.refusals.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_refusals_are_counted_together_and_come_first() {
        let mut log = Log::default();
        let mut note = |object: &str, now_ms| {
            log.note(
                ("key", "toplevel"),
                object.as_bytes(),
                b"u",
                vec![],
                now_ms,
                2,
            );
            log.newest(9)
                .iter()
                .map(|one| (one.object.clone(), one.count, one.number))
                .collect::<Vec<_>>()
        };
        note("a", 1000);
        note("b", 2000);
        assert_eq!(
            note("a", 3000),
            [(b"a".to_vec(), 2, 0), (b"b".to_vec(), 1, 1)]
        );
        assert_eq!(
            note("a", 70_000),
            [(b"a".to_vec(), 1, 2), (b"a".to_vec(), 2, 0)]
        );
        assert_eq!(log.counts.key, 4);
    }

    #[test]
    fn long_words_are_cut() {
        let mut log = Log::default();
        let long = vec![b'x'; 1 << 20];
        log.note(("auth", "toplevel"), b"AUTH", &long, vec![], 0, 10);
        assert_eq!(log.newest(1)[0].user.len(), WORD_BYTES_MAX);
        assert_eq!(log.counts.auth, 1);
    }
}
