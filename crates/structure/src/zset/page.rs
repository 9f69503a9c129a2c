//! A page of members: its bytes, the members too long to stand in them, and what it remembers.
//!
//! ```text
//! journal   (bytes, start 2, len 2)...     to be read from the end
//! ```
//! A page grows but is never cut, so its length at the moment says what came later. What a slot
//! was, its first change says; what is in a free slot beside its head, nobody asks.

use std::sync::Arc;

use crate::growth::copy_of;
use crate::journal::Part;

/// Bytes of a page at most.
pub(super) const PAGE_BYTES: usize = 16 << 10;
/// What stands in a journal behind some bytes.
const TRAILER: usize = 4;
/// What a long member costs beside its bytes.
const FAR_COST: usize = 16;

/// See the module's documentation, and that of the store for what stands in `bytes`.
pub(super) struct Page {
    pub(super) bytes: Vec<u8>,
    pub(super) free_units: u32,
    far: Option<Box<Far>>,
}

/// Members too long to stand among the others. Who takes a copy of the page has them in common.
#[derive(Clone, Default)]
struct Far {
    members: Vec<Option<Arc<[u8]>>>,
    vacant: Vec<u32>,
}

/// A copy takes as many bytes as the original.
impl Clone for Page {
    fn clone(&self) -> Self {
        Self {
            bytes: copy_of(&self.bytes),
            free_units: self.free_units,
            far: self.far.clone(),
        }
    }
}

impl Page {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            free_units: 0,
            far: None,
        }
    }

    /// Long member `index`.
    pub(super) fn far(&self, index: usize) -> &Arc<[u8]> {
        let far = self
            .far
            .as_ref()
            .and_then(|far| far.members[index].as_ref());
        far.expect("a live record refers to it")
    }

    pub(super) fn far_insert(&mut self, member: Arc<[u8]>) -> u32 {
        let far = self.far.get_or_insert_default();
        if let Some(index) = far.vacant.pop() {
            far.members[index as usize] = Some(member);
            return index;
        }
        far.members.push(Some(member));
        (far.members.len() - 1) as u32
    }

    pub(super) fn far_remove(&mut self, index: usize) -> Arc<[u8]> {
        let far = self.far.as_mut().expect("a live record refers to it");
        let member = far.members[index].take();
        far.vacant.push(index as u32);
        if far.vacant.len() == far.members.len() {
            self.far = None;
        }
        member.expect("a live record refers to it")
    }

    /// How many long members there are or were.
    pub(super) fn far_slots(&self) -> usize {
        self.far.as_ref().map_or(0, |far| far.members.len())
    }

    /// Bytes of all long members.
    pub(super) fn far_bytes(&self) -> usize {
        let members = self.far.iter().flat_map(|far| far.members.iter().flatten());
        members.map(far_bytes).sum()
    }
}

/// Bytes that a long member takes.
pub(super) fn far_bytes(member: &Arc<[u8]>) -> usize {
    member.len() + FAR_COST
}

/// What a page remembers.
pub(super) struct Journal {
    len: usize,
    log: Vec<u8>,
    far: Vec<(u32, Arc<[u8]>)>,
}

impl Part for Page {
    type Journal = Journal;

    fn begin(&self) -> Journal {
        Journal {
            len: self.bytes.len(),
            log: Vec::new(),
            far: Vec::new(),
        }
    }
}

impl Journal {
    /// Keeps `len` bytes from `start` on, which are about to change; false where there is no room.
    pub(super) fn keep(&mut self, page: &Page, start: usize, len: usize) -> bool {
        if start >= self.len {
            return true;
        }
        let (log, more) = (&mut self.log, len + TRAILER);
        if log.len() + more > page.bytes.len() / 2 {
            return false;
        }
        if log.len() + more > log.capacity() {
            log.reserve_exact(more.max(log.len() / 2).max(32));
        }
        log.extend_from_slice(&page.bytes[start..start + len]);
        log.extend((start as u16).to_le_bytes());
        log.extend((len as u16).to_le_bytes());
        true
    }

    /// Keeps long member `index`, which is about to go; false where there is no room.
    pub(super) fn keep_far(&mut self, page: &Page, index: usize) -> bool {
        let has_room = self.far.len() < page.far_slots();
        if has_room {
            self.far.push((index as u32, page.far(index).clone()));
        }
        has_room
    }

    /// Makes a later page what it was.
    pub(super) fn undo(mut self, page: &mut Page) {
        while let Some(end) = self.log.len().checked_sub(TRAILER) {
            let word =
                |at: usize| usize::from(u16::from_le_bytes([self.log[at], self.log[at + 1]]));
            let (start, len) = (word(end), word(end + 2));
            page.bytes[start..start + len].copy_from_slice(&self.log[end - len..end]);
            self.log.truncate(end - len);
        }
        page.bytes.truncate(self.len);
        for (index, member) in self.far.into_iter().rev() {
            let far = page.far.get_or_insert_default();
            let index = index as usize;
            if index >= far.members.len() {
                far.members.resize(index + 1, None);
            }
            far.members[index] = Some(member);
        }
    }
}
