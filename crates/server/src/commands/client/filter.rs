//! Which clients CLIENT LIST and CLIENT KILL mean.

use std::sync::atomic::Ordering;

use engine::error::shown;
use engine::host::ClientId;
use engine::{CommandError, number};
use resp::Args;

use crate::shared::{Client, flag};
use crate::users::Users;

/// The kinds of client that TYPE tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Primary,
    Replica,
    Subscriber,
}

/// What a client must be like. What is `None` does not matter.
#[derive(Debug, Default)]
pub(super) struct Filter {
    numbers: Option<Vec<u64>>,
    kind: Option<Kind>,
    user: Option<Box<[u8]>>,
    address: Option<Box<[u8]>>,
    local_address: Option<Box<[u8]>>,
    age_s_min: Option<u64>,
    skips_own: bool,
}

impl Filter {
    /// The filter of CLIENT LIST.
    pub(super) fn to_list(args: Args<'_>) -> Result<Self, CommandError> {
        let mut filter = Self::default();
        if args.len() == 4 && args.is(2, "TYPE") {
            filter.kind = Some(kind(args.at(3))?);
        } else if args.len() >= 4 && args.is(2, "ID") {
            let mut numbers = Vec::new();
            for word in args.from(3).iter() {
                let number =
                    number::int(word).map_err(|_| CommandError::text("ERR Invalid client ID"))?;
                numbers.extend(u64::try_from(number));
            }
            filter.numbers = Some(numbers);
        } else if args.len() != 2 {
            return Err(CommandError::Syntax);
        }
        Ok(filter)
    }

    /// The filter of CLIENT KILL, and whether it came in the old form: an address alone.
    pub(super) fn to_kill(args: Args<'_>, users: &Users) -> Result<(Self, bool), CommandError> {
        let mut filter = Self::default();
        if args.len() == 3 {
            filter.address = Some(args.at(2).into());
            return Ok((filter, true));
        }
        filter.skips_own = true;
        let mut at = 2;
        while at < args.len() {
            let Some(value) = args.get(at + 1) else {
                return Err(CommandError::Syntax);
            };
            filter.take(args, at, value, users)?;
            at += 2;
        }
        Ok((filter, false))
    }

    fn take(
        &mut self,
        args: Args<'_>,
        at: usize,
        value: &[u8],
        users: &Users,
    ) -> Result<(), CommandError> {
        let positive = |error: &'static str| {
            let number = number::int(value).ok().and_then(|n| u64::try_from(n).ok());
            number
                .filter(|&number| number > 0)
                .ok_or(CommandError::text(error))
        };
        if args.is(at, "ID") {
            self.numbers = Some(vec![positive("ERR client-id should be greater than 0")?]);
        } else if args.is(at, "TYPE") {
            self.kind = Some(kind(value)?);
        } else if args.is(at, "USER") {
            if !users.exists(value) {
                let user = shown(value);
                return Err(CommandError::err(format!("No such user '{user}'")));
            }
            self.user = Some(value.into());
        } else if args.is(at, "ADDR") {
            self.address = Some(value.into());
        } else if args.is(at, "LADDR") {
            self.local_address = Some(value.into());
        } else if args.is(at, "MAXAGE") {
            number::int(value)
                .map_err(|_| CommandError::text("ERR maxage is not an integer or out of range"))?;
            self.age_s_min = Some(positive("ERR maxage should be greater than 0")?);
        } else if args.is(at, "SKIPME") {
            self.skips_own = match value {
                _ if value.eq_ignore_ascii_case(b"YES") => true,
                _ if value.eq_ignore_ascii_case(b"NO") => false,
                _ => return Err(CommandError::Syntax),
            };
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(())
    }

    /// Whether a client is meant; `own` asks.
    pub(super) fn fits(&self, client: &Client, own: ClientId, now_ms: u64) -> bool {
        let is = |wanted: &Option<Box<[u8]>>, has: &[u8]| {
            wanted.as_ref().is_none_or(|wanted| **wanted == *has)
        };
        let age_s = now_ms.saturating_sub(client.created_ms) / 1000;
        let numbers = self.numbers.as_ref();
        numbers.is_none_or(|numbers| numbers.contains(&client.id.number))
            && self.kind.is_none_or(|kind| kind == kind_of(client))
            && is(&self.address, client.peer.address.as_bytes())
            && is(&self.local_address, client.peer.local_address.as_bytes())
            && self.age_s_min.is_none_or(|least| age_s >= least)
            && is(&self.user, &client.names.lock().user)
            && !(self.skips_own && client.id == own)
    }
}

fn kind(word: &[u8]) -> Result<Kind, CommandError> {
    let names = [
        ("normal", Kind::Normal),
        ("master", Kind::Primary),
        ("slave", Kind::Replica),
        ("replica", Kind::Replica),
        ("pubsub", Kind::Subscriber),
    ];
    let found = names
        .iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
    found.map(|&(_, kind)| kind).ok_or_else(|| {
        let word = shown(word);
        CommandError::err(format!("Unknown client type '{word}'"))
    })
}

fn kind_of(client: &Client) -> Kind {
    if client.flags.load(Ordering::Relaxed) & flag::PUBSUB != 0 {
        Kind::Subscriber
    } else {
        Kind::Normal
    }
}
