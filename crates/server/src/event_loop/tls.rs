//! Connections with TLS: from what their sockets give to requests, and back.
//!
//! Their tokens are greater than those of plain connections, so that events of these pass no
//! branch for them. What runs requests and sends replies is made twice, once for each kind.

use super::*;
use crate::tls::Fault;
use engine::acl::Place;

/// Milliseconds between two lines about handshakes that failed.
const FAULT_REST_MS: u64 = 1000;

/// What a loop keeps for its connections with TLS.
#[derive(Default)]
pub struct TlsTurn {
    /// What was decrypted, lent to the connection whose turn it is.
    plain: Vec<u8>,
    /// The turn in which a handshake was carried on last, and how many were.
    handshakes: (u64, u32),
    /// When a handshake that fails may be logged again: Unix milliseconds.
    next_line_ms: u64,
}

impl<L: RawLock> EventLoop<'_, L> {
    /// An event of a listener, or of a connection with TLS.
    #[cold]
    pub(super) fn take_other(&mut self, token: u64, readable: bool, writable: bool) {
        if token >= TOKEN_LISTENERS {
            return self.accept(token - TOKEN_LISTENERS);
        }
        self.active_ms = self.now_ms;
        if writable {
            self.flush_at(token);
        }
        if readable && let Some(mut connection) = self.connections.take_at(token) {
            self.read_tls(&mut connection);
            self.put_back::<true>(connection);
        }
        if self.executor.frames().len_bytes() >= FRAME_BYTES {
            self.hand_over();
        }
    }

    fn read_tls(&mut self, connection: &mut Connection) {
        let Some(mut tls) = connection.tls.take() else {
            return;
        };
        let was_handshaking = tls.is_handshaking();
        if was_handshaking && !self.may_shake_hands() {
            // The socket stays readable.
            connection.tls = Some(tls);
            return;
        }
        let mut buf = std::mem::take(&mut self.buf);
        buf.clear();
        buf.reserve(READ_BYTES);
        if self.receive(connection.fd(), &mut buf).is_none() {
            connection.has_hung_up = true;
            connection.is_dead = true;
        }
        let is_fresh = connection.input.is_empty() && !connection.is_held;
        let mut plain = std::mem::take(&mut self.tls.plain);
        let into = match is_fresh {
            true => &mut plain,
            false => {
                self.note_growth();
                &mut connection.input
            }
        };
        let before = into.len();
        let outcome = tls.receive(&buf, into);
        let got = into.len() - before;
        let is_here = was_handshaking && !tls.is_handshaking();
        connection.tls = Some(tls);
        buf.truncate(READ_BYTES);
        self.buf = buf;
        if is_here {
            self.log_in_by_certificate(connection);
        }
        if got > 0 {
            let fresh = is_fresh.then_some(&plain[..]);
            self.take_requests::<true>(connection, fresh, got);
        }
        plain.clear();
        plain.shrink_to(READ_BYTES);
        self.tls.plain = plain;
        match outcome {
            Ok(false) => {}
            Ok(true) => {
                connection.has_hung_up = true;
                connection.is_dead = true;
            }
            Err(fault) => self.note_fault(connection, &fault, was_handshaking),
        }
        // What the handshake says, and the alert.
        let fd = connection.fd();
        if !connection.has_hung_up
            && let Some(tls) = &mut connection.tls
            && tls.send(fd).is_err()
        {
            connection.has_hung_up = true;
            connection.is_dead = true;
        }
    }

    /// Whether this turn may carry on one more handshake: it takes the time of many requests.
    fn may_shake_hands(&mut self) -> bool {
        let turn = self.network().cycles.get();
        let (last, count) = &mut self.tls.handshakes;
        if *last != turn {
            (*last, *count) = (turn, 0);
        }
        *count += 1;
        *count <= self.host.config.tls.handshakes_a_turn
    }

    /// Logs a client in as the user that its certificate names, where that is wanted.
    fn log_in_by_certificate(&mut self, connection: &mut Connection) {
        if !self.host.config.tls.logs_in {
            return;
        }
        let Some(name) = connection.tls.as_ref().and_then(|tls| tls.common_name()) else {
            return;
        };
        let session = &mut connection.session;
        match self.shared.users.by_certificate(name) {
            Some(user) => {
                verbose!(
                    "TLS: Auto-authenticated client as {}",
                    engine::error::shown(name)
                );
                connection.client.names.lock().user = name.into();
                session.authenticated = true;
                session.set_user(user);
            }
            None => {
                let reason = ("tls-cert", Place::TopLevel);
                self.host.note_refusal(session, reason, b"", name);
            }
        }
    }

    /// Closes a connection that cannot go on.
    fn note_fault(&mut self, connection: &mut Connection, fault: &Fault, in_handshake: bool) {
        connection.is_dead = true;
        // It would not understand an alert.
        connection.has_hung_up |= matches!(fault, Fault::Plain);
        let peer = &connection.client.peer;
        if in_handshake && self.now_ms >= self.tls.next_line_ms {
            self.tls.next_line_ms = self.now_ms + FAULT_REST_MS;
            warning!(
                "Error accepting a client connection: {fault} (addr={} laddr={})",
                peer.address,
                peer.local_address
            );
        } else {
            verbose!("TLS of client {}: {fault}", peer.address);
        }
    }

    /// Whether a connection's handshake takes too long.
    pub(super) fn is_late(&self, connection: &Connection) -> bool {
        let Some(tls) = &connection.tls else {
            return false;
        };
        let age_ms = self.now_ms.saturating_sub(connection.client.created_ms);
        tls.is_handshaking() && age_ms > crate::tls::HANDSHAKE_MS_MAX
    }
}
