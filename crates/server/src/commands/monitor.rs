//! MONITOR: every command, as it ran, to whoever asked.
//!
//! A line is made once, by the thread that ran the command, and goes to every thread's monitors.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use command::{Arity, Flags, Group, Shape};
use engine::handler::runs;
use engine::session::Session;
use engine::{Command, CommandError, Context, Entry};
use resp::{Args, Writer};

use super::secrets;
use crate::host::ThreadHost;

/// The family.
pub(super) const COMMANDS: &[Command] = &[MONITOR];

const MONITOR: Command = Command {
    name: "monitor",
    group: Group::Server,
    since: "1.0.0",
    summary: "Shows every command that the server runs.",
    arity: Arity::exactly(1),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    reply: &[Shape::Ok],
    ..runs(monitor)
};

fn monitor(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if !cx.may_block {
        return Err(CommandError::text(
            "ERR MONITOR isn't allowed for DENY BLOCKING client",
        ));
    }
    if !cx.session.monitors {
        cx.session.monitors = true;
        let shared = &ThreadHost::of(cx).shared;
        shared.monitors.fetch_add(1, Ordering::Relaxed);
        out.ok();
    }
    Ok(())
}

/// Ends the client's monitoring, if any.
pub(super) fn stop(cx: &mut Context<'_>) {
    if std::mem::take(&mut cx.session.monitors) {
        let shared = &ThreadHost::of(cx).shared;
        shared.monitors.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A command as monitors see it.
pub fn monitor_line(
    host: &ThreadHost,
    session: &Session,
    entry: &Entry,
    args: Args<'_>,
) -> Arc<[u8]> {
    let now_us = crate::sys::unix_us();
    let (seconds, us) = (now_us / 1_000_000, now_us % 1_000_000);
    let address = match &host.client {
        Some(client) if client.peer.is_unix => {
            format!("unix:{}", client.peer.address.trim_end_matches(":0"))
        }
        Some(client) => client.peer.address.clone(),
        None => "lua".to_owned(),
    };
    let mut line = format!("+{seconds}.{us:06} [{} {address}]", session.db).into_bytes();
    let hidden = secrets::positions(entry, args);
    for (index, word) in args.iter().enumerate() {
        line.extend_from_slice(b" \"");
        let word = if hidden.contains(&index) {
            secrets::SHOWN
        } else {
            word
        };
        escape(word, &mut line);
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line.into()
}

fn escape(word: &[u8], line: &mut Vec<u8>) {
    for &byte in word {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            7 => line.extend_from_slice(b"\\a"),
            8 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(byte),
            _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}
