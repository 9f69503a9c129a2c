//! What the draws and scans of hashes and sorted sets take behind their key.

use resp::{Args, Writer};

use crate::CommandError;
use crate::number;

/// The options.
pub(super) struct Options<'a> {
    /// MATCH.
    pub pattern: Option<&'a [u8]>,
    /// COUNT.
    pub count: usize,
    /// NOVALUES of hashes, NOSCORES of sorted sets.
    pub names_only: bool,
}

/// The options from word 3 on. NOVALUES is for hashes alone, NOSCORES for sorted sets.
pub(super) fn options<'a>(args: Args<'a>, of_hash: bool) -> Result<Options<'a>, CommandError> {
    let mut options = Options {
        pattern: None,
        count: 10,
        names_only: false,
    };
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "NOVALUES") {
            if !of_hash {
                return Err("ERR NOVALUES option can only be used in HSCAN".into());
            }
            options.names_only = true;
            at += 1;
            continue;
        }
        if !of_hash && args.is(at, "NOSCORES") {
            options.names_only = true;
            at += 1;
            continue;
        }
        let value = args.get(at + 1).ok_or(CommandError::Syntax)?;
        if args.is(at, "COUNT") {
            let count = number::int(value)?;
            options.count = usize::try_from(count).map_err(|_| CommandError::Syntax)?;
            if count == 0 {
                return Err(CommandError::Syntax);
            }
        } else if args.is(at, "MATCH") {
            // A lone star is none at all: it matches the empty name too.
            options.pattern = (value != b"*").then_some(value);
        } else {
            return Err(CommandError::Syntax);
        }
        at += 2;
    }
    Ok(options)
}

/// The reply where there is no such key.
pub(super) fn nothing(out: &mut Writer<'_>) {
    out.array(2);
    out.bulk(b"0");
    out.array(0);
}

/// The count of HRANDFIELD and ZRANDMEMBER, and whether their flag stands behind it.
pub(super) fn count_and_flag(args: Args<'_>, flag: &str) -> Result<(i64, bool), CommandError> {
    let count = number::int(args.at(2))?;
    if count == i64::MIN {
        return Err(CommandError::text(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        ));
    }
    if args.len() > 4 || args.len() == 4 && !args.is(3, flag) {
        return Err(CommandError::Syntax);
    }
    let with = args.len() == 4;
    if with && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(CommandError::Range);
    }
    Ok((count, with))
}
