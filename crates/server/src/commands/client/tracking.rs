//! CLIENT TRACKING and what belongs to it: the messages that keep a client's cache right.

use engine::host::ClientId;
use engine::tracking::{Mode, Tracking};

use super::*;

pub(super) const CLIENT_TRACKING: Command = Command {
    name: "tracking",
    group: Group::Connection,
    since: "6.0.0",
    summary: "Switches invalidation messages for this connection on or off.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[
        one_of("status", &[flag("ON"), flag("OFF")]),
        int("client-id").token("REDIRECT").optional(),
        string("prefix").token("PREFIX").optional().multiple_token(),
        flag("BCAST").optional(),
        flag("OPTIN").optional(),
        flag("OPTOUT").optional(),
        flag("NOLOOP").optional(),
    ],
    reply: &[Shape::Ok],
    ..runs(client_tracking)
};

fn client_tracking(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let options = Options::of(cx, args)?;
    if !on_or_off(args)? {
        stop(cx);
        out.ok();
        return Ok(());
    }
    let prefixes = options.prefixes(cx.session.tracking.as_deref())?;
    let mode = options.mode(cx.session.tracking.as_deref())?;
    let old = cx.session.tracking.take().unwrap_or_default();
    let mut tracking = Tracking {
        mode,
        is_noloop: options.is_noloop,
        redirect: options.redirect,
        is_broken: false,
        is_excepted: old.is_excepted && old.mode == mode,
        prefixes: old.prefixes,
    };
    tracking.prefixes.extend_from_slice(&prefixes);
    tracking.prefixes.sort();
    cx.shared.tracking.set(cx.session.id, &tracking, &prefixes);
    cx.session.tracking = Some(Box::new(tracking));
    out.ok();
    Ok(())
}

/// Ends what CLIENT TRACKING began.
pub fn stop(cx: &mut Context<'_>) {
    if let Some(tracking) = cx.session.tracking.take() {
        cx.shared.tracking.forget(cx.session.id, &tracking);
    }
}

/// The words behind ON or OFF.
#[derive(Default)]
struct Options<'a> {
    redirect: Option<ClientId>,
    prefixes: Vec<&'a [u8]>,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    is_noloop: bool,
}

impl<'a> Options<'a> {
    fn of(cx: &mut Context<'_>, args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut at = 3;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            if args.is(at, "REDIRECT") && has_value {
                if options.redirect.is_some() {
                    return Err(CommandError::text(
                        "ERR A client can only redirect to a single other client",
                    ));
                }
                let number = u64::try_from(number::int(args.at(at + 1))?).ok();
                let host = ThreadHost::of(cx);
                let clients = host.shared.clients.lock();
                let client = number.and_then(|number| clients.get(&number));
                let client = client.ok_or_else(|| {
                    CommandError::text("ERR The client ID you want redirect to does not exist")
                })?;
                options.redirect = Some(client.id);
                at += 1;
            } else if args.is(at, "PREFIX") && has_value {
                options.prefixes.push(args.at(at + 1));
                at += 1;
            } else if args.is(at, "BCAST") {
                options.is_broadcast = true;
            } else if args.is(at, "OPTIN") {
                options.is_opt_in = true;
            } else if args.is(at, "OPTOUT") {
                options.is_opt_out = true;
            } else if args.is(at, "NOLOOP") {
                options.is_noloop = true;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }

    /// The mode that they choose, from the one that the client has so far.
    fn mode(&self, old: Option<&Tracking>) -> Result<Mode, CommandError> {
        let new = match (self.is_broadcast, self.is_opt_in, self.is_opt_out) {
            (true, false, false) => Mode::Broadcast,
            (false, true, false) => Mode::OptIn,
            (false, false, true) => Mode::OptOut,
            (false, false, false) => Mode::All,
            (true, ..) => {
                return Err(CommandError::text(
                    "ERR OPTIN and OPTOUT are not compatible with BCAST",
                ));
            }
            (false, true, true) => {
                return Err(CommandError::text(
                    "ERR You can't specify both OPTIN mode and OPTOUT mode",
                ));
            }
        };
        let switches = |what: &str| {
            Err(CommandError::err(format!(
                "You can't switch {what} before disabling tracking for this client, and then \
                 re-enabling it with a different mode."
            )))
        };
        match (old.map(|old| old.mode), new) {
            (Some(Mode::Broadcast), Mode::Broadcast) => Ok(new),
            (Some(Mode::Broadcast), _) | (Some(_), Mode::Broadcast) => {
                switches("BCAST mode on/off")
            }
            (Some(Mode::OptIn), Mode::OptOut) | (Some(Mode::OptOut), Mode::OptIn) => {
                switches("OPTIN/OPTOUT mode")
            }
            _ => Ok(new),
        }
    }

    /// The prefixes that the client has not yet.
    fn prefixes(&self, old: Option<&Tracking>) -> Result<Vec<Box<[u8]>>, CommandError> {
        if !self.is_broadcast {
            return match self.prefixes.is_empty() {
                true => Ok(Vec::new()),
                false => Err(CommandError::text(
                    "ERR PREFIX option requires BCAST mode to be enabled",
                )),
            };
        }
        let mut had: Vec<&[u8]> = Vec::new();
        if let Some(old) = old {
            had.extend(old.prefixes.iter().map(|prefix| &**prefix));
        }
        if self.prefixes.is_empty() {
            let is_new = !had.contains(&&b""[..]);
            return Ok(if is_new {
                vec![Box::default()]
            } else {
                Vec::new()
            });
        }
        for (index, &prefix) in self.prefixes.iter().enumerate() {
            let overlaps = |other: &&&[u8]| prefix.starts_with(other) || other.starts_with(prefix);
            let found = match had.iter().find(overlaps) {
                Some(other) => Some(("an existing", other)),
                None => {
                    let others = self.prefixes[index + 1..].iter();
                    others
                        .clone()
                        .find(overlaps)
                        .map(|other| ("another provided", other))
                }
            };
            if let Some((which, other)) = found {
                return Err(CommandError::err(format!(
                    "Prefix '{}' overlaps with {which} prefix '{}'. Prefixes for a single client \
                     must not overlap.",
                    shown(prefix),
                    shown(other)
                )));
            }
        }
        Ok(self.prefixes.iter().map(|&prefix| prefix.into()).collect())
    }
}

pub(super) const CLIENT_CACHING: Command = Command {
    name: "caching",
    group: Group::Connection,
    since: "6.0.0",
    summary: "Says whether the next command's keys are tracked.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[one_of("mode", &[flag("YES"), flag("NO")])],
    reply: &[Shape::Ok],
    ..runs(client_caching)
};

fn client_caching(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mode = cx.session.tracking.as_ref().map(|tracking| tracking.mode);
    let error = match mode {
        None => {
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled"
        }
        Some(mode) if args.is(2, "YES") => match mode {
            Mode::OptIn => "",
            _ => "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        },
        Some(mode) if args.is(2, "NO") => match mode {
            Mode::OptOut => "",
            _ => "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        },
        Some(_) => return Err(CommandError::Syntax),
    };
    match &mut cx.session.tracking {
        Some(tracking) if error.is_empty() => tracking.is_excepted = true,
        _ => return Err(CommandError::text(error)),
    }
    out.ok();
    Ok(())
}

pub(super) const CLIENT_GETREDIR: Command = Command {
    name: "getredir",
    group: Group::Connection,
    since: "6.0.0",
    summary: "Returns the client that receives this connection's invalidations.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Int],
    ..runs(client_getredir)
};

fn client_getredir(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    out.int(Tracking::told(cx.session.tracking.as_deref()));
    Ok(())
}

pub(super) const CLIENT_TRACKINGINFO: Command = Command {
    name: "trackinginfo",
    group: Group::Connection,
    since: "6.2.0",
    summary: "Describes how this connection tracks keys.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Map],
    ..runs(client_trackinginfo)
};

fn client_trackinginfo(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let tracking = cx.session.tracking.as_deref();
    let mut flags = Vec::new();
    if let Some(tracking) = tracking {
        flags.push("on");
        match (tracking.mode, tracking.is_excepted) {
            (Mode::All, _) => {}
            (Mode::Broadcast, _) => flags.push("bcast"),
            (Mode::OptIn, false) => flags.push("optin"),
            (Mode::OptIn, true) => flags.extend(["optin", "caching-yes"]),
            (Mode::OptOut, false) => flags.push("optout"),
            (Mode::OptOut, true) => flags.extend(["optout", "caching-no"]),
        }
        if tracking.is_noloop {
            flags.push("noloop");
        }
        if tracking.is_broken {
            flags.push("broken_redirect");
        }
    } else {
        flags.push("off");
    }
    out.map(3);
    out.text("flags");
    out.set(flags.len());
    flags.iter().for_each(|flag| out.text(flag));
    out.text("redirect");
    out.int(Tracking::told(tracking));
    out.text("prefixes");
    let prefixes = tracking.map_or(&[][..], |tracking| &tracking.prefixes);
    out.array(prefixes.len());
    prefixes.iter().for_each(|prefix| out.bulk(prefix));
    Ok(())
}
