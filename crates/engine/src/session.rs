//! What the engine knows of a client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use resp::{OwnedArgs, Protocol};

use crate::CommandError;
use crate::acl::{self, Rights, User};
use crate::blocking::Waiter;
use crate::host::ClientId;
use crate::pubsub::Push;
use crate::tracking::Tracking;

/// Bytes that the commands queued by one MULTI may take.
pub const MULTI_BYTES_MAX: usize = 1 << 30;

/// A client's state between commands.
#[derive(Debug)]
pub struct Session {
    /// Who it is.
    pub id: ClientId,
    /// The database that SELECT chose.
    pub db: u32,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// Whether it may run commands: it gave the password, or none is set.
    pub authenticated: bool,
    /// Who it logged in as.
    user: Arc<User>,
    /// What its user may do, as it was told last.
    rights: Arc<Rights>,
    /// Whether that is less than everything.
    is_restricted: bool,
    /// Set between MULTI and EXEC.
    pub multi: Option<Box<Multi>>,
    /// Keys that it watches.
    pub watches: Vec<Watch>,
    /// Set by whoever changes a watched key.
    pub watch_broken: Arc<AtomicBool>,
    /// Channels and patterns.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// What it waits for.
    pub waiting: Option<Arc<Waiter>>,
    /// The last frame of the log that it wrote, or one after that.
    pub wrote_lsn: u64,
    /// MONITOR: it is shown every command, and may touch no key.
    pub monitors: bool,
    /// CLIENT NO-TOUCH: its reads do not count as use.
    pub no_touch: bool,
    /// Its last command, as an index into the table, for CLIENT LIST; past its end for none.
    pub last_command: u16,
    /// What to do with replies.
    pub reply_mode: ReplyMode,
    /// Close it when its output is sent.
    pub closing: bool,
    /// CLIENT TRACKING ON.
    pub tracking: Option<Box<Tracking>>,
    /// HIMPORT PREPARE: lists of fields, by their names.
    pub fieldsets: Option<Box<Fieldsets>>,
}

/// Lists of fields by their names.
pub type Fieldsets = BTreeMap<Box<[u8]>, Fieldset>;

/// The fields of hashes that are to be imported.
#[derive(Debug)]
pub struct Fieldset {
    /// The fields, the short ones first.
    pub fields: OwnedArgs,
    /// For each of them, the place of its value among those that a client sends.
    pub places: Box<[u32]>,
}

/// CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// Every reply is sent.
    #[default]
    On,
    /// None is.
    Off,
    /// The reply of the next command is not sent.
    SkipNext,
    /// The reply of this command is not sent.
    Skip,
}

/// Commands queued by MULTI.
#[derive(Debug, Default)]
pub struct Multi {
    /// The commands: their index in the table, and their words.
    pub queued: Vec<(u16, OwnedArgs)>,
    /// Bytes of their words.
    pub bytes: usize,
    /// Whether one was refused, so that EXEC must fail.
    pub aborted: bool,
    /// Why EXEC itself was refused, which ends the transaction all the same.
    pub refusal: Option<CommandError>,
}

/// A watched key.
#[derive(Debug, Clone)]
pub struct Watch {
    /// Its database.
    pub db: u32,
    /// The key.
    pub key: Box<[u8]>,
    /// Its hash.
    pub hash: u64,
    /// Whether it was already past its deadline when it was watched.
    pub was_dead: bool,
}

/// What a client is subscribed to.
#[derive(Debug, Default)]
pub struct Subscriptions {
    /// SUBSCRIBE.
    pub channels: BTreeSet<Box<[u8]>>,
    /// PSUBSCRIBE.
    pub patterns: BTreeSet<Box<[u8]>>,
    /// SSUBSCRIBE.
    pub shard_channels: BTreeSet<Box<[u8]>>,
}

impl Subscriptions {
    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shard_channels.is_empty()
    }

    /// Whether a message is for one of them. A push that is no message is for everybody.
    pub fn hears(&self, push: &Push) -> bool {
        match push.topic() {
            (b"message", channel) => self.channels.contains(channel),
            (b"pmessage", pattern) => self.patterns.contains(pattern),
            (b"smessage", channel) => self.shard_channels.contains(channel),
            _ => true,
        }
    }
}

impl Session {
    /// A new client's session.
    pub fn new(id: ClientId, authenticated: bool) -> Self {
        Self {
            id,
            db: 0,
            protocol: Protocol::Resp2,
            authenticated,
            user: acl::unrestricted(),
            rights: acl::unrestricted().rights(),
            is_restricted: false,
            multi: None,
            watches: Vec::new(),
            watch_broken: Arc::default(),
            subscriptions: None,
            waiting: None,
            wrote_lsn: 0,
            monitors: false,
            no_touch: false,
            last_command: u16::MAX,
            reply_mode: ReplyMode::On,
            closing: false,
            tracking: None,
            fieldsets: None,
        }
    }

    /// Makes it a session of this user.
    pub fn set_user(&mut self, user: Arc<User>) {
        self.user = user;
        self.take_rights();
    }

    /// Takes over what its user may do now.
    pub fn take_rights(&mut self) {
        self.rights = self.user.rights();
        self.is_restricted = !self.rights.is_everything();
    }

    /// Who it logged in as.
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// What its user may do.
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Whether that is less than everything.
    #[inline]
    pub fn is_restricted(&self) -> bool {
        self.is_restricted
    }

    /// Whether its subscriptions restrict it to a few commands: only in RESP2.
    #[inline]
    pub fn is_subscriber(&self) -> bool {
        self.subscriptions.is_some() && self.protocol == Protocol::Resp2
    }
}
