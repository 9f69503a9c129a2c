//! The connections of a thread, each in a slot that epoll's token names.
//!
//! A connection leaves its slot for its turn, so that the loop can lend it out together with
//! itself, and comes back to the same one. That is a move of one pointer: at one request a turn,
//! a hash table here was a tenth of the loop's own work.
//!
//! # Invariants
//! - A token holds the slot's number and how many connections had the slot before: an event of a
//!   connection that is gone never reaches the one that has its slot now.
//! - `by_number` has exactly the connections that have a slot, those lent out too.

use std::collections::HashMap;

use super::TOKEN_TLS;
use crate::connection::Connection;

/// A thread's connections.
#[derive(Default)]
pub struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The slot of each client's number.
    by_number: HashMap<u64, u32, Numbers>,
}

#[derive(Default)]
struct Slot {
    /// How many connections had this slot before.
    generation: u32,
    /// None while the connection has its turn, and where the slot is free.
    connection: Option<Box<Connection>>,
}

/// Generations count in 31 bits: the highest bit of a token says whether its connection has TLS.
const GENERATION_MASK: u32 = u32::MAX >> 1;

impl Connections {
    /// Gives a connection its slot; returns the token to watch it with.
    pub fn add(&mut self, mut connection: Box<Connection>) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).expect("fewer connections than descriptors")
        });
        let entry = &mut self.slots[slot as usize];
        let mut token = u64::from(entry.generation) << 32 | u64::from(slot);
        if connection.tls.is_some() {
            token |= TOKEN_TLS;
        }
        connection.token = token;
        self.by_number.insert(connection.session.id.number, slot);
        entry.connection = Some(connection);
        token
    }

    /// Takes out for its turn the connection that an event is about, if it is still there.
    #[inline]
    pub fn take_at(&mut self, token: u64) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut((token & u64::from(u32::MAX)) as usize)?;
        if u64::from(slot.generation) != (token & !TOKEN_TLS) >> 32 {
            return None;
        }
        slot.connection.take()
    }

    /// The connection that an event is about, if it is still there.
    #[inline]
    pub fn at(&self, token: u64) -> Option<&Connection> {
        let slot = self.slots.get((token & u64::from(u32::MAX)) as usize)?;
        let is_same = u64::from(slot.generation) == (token & !TOKEN_TLS) >> 32;
        slot.connection.as_deref().filter(|_| is_same)
    }

    /// Takes out a client's connection for its turn.
    pub fn take(&mut self, number: u64) -> Option<Box<Connection>> {
        let &slot = self.by_number.get(&number)?;
        self.slots[slot as usize].connection.take()
    }

    /// Puts a connection back after its turn.
    #[inline]
    pub fn put(&mut self, connection: Box<Connection>) {
        let slot = &mut self.slots[(connection.token & u64::from(u32::MAX)) as usize];
        debug_assert!(slot.connection.is_none(), "two connections in one slot");
        slot.connection = Some(connection);
    }

    /// Frees the slot of a connection that was taken out and is to be closed.
    pub fn release(&mut self, connection: &Connection) {
        if let Some(slot) = self.by_number.remove(&connection.session.id.number) {
            let entry = &mut self.slots[slot as usize];
            entry.generation = entry.generation.wrapping_add(1) & GENERATION_MASK;
            self.free.push(slot);
        }
    }

    /// A client's connection, unless it has its turn.
    pub fn get(&self, number: u64) -> Option<&Connection> {
        let &slot = self.by_number.get(&number)?;
        self.slots[slot as usize].connection.as_deref()
    }

    /// A client's connection, unless it has its turn.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Connection> {
        let &slot = self.by_number.get(&number)?;
        self.slots[slot as usize].connection.as_deref_mut()
    }

    /// The numbers of all clients.
    pub fn numbers(&self) -> Vec<u64> {
        self.by_number.keys().copied().collect()
    }
}

/// Client numbers are spread well enough as they are.
#[derive(Clone, Copy, Default)]
struct Numbers;

impl std::hash::BuildHasher for Numbers {
    type Hasher = NumberHasher;
    fn build_hasher(&self) -> NumberHasher {
        NumberHasher(0)
    }
}

/// A multiplication.
struct NumberHasher(u64);

impl std::hash::Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
