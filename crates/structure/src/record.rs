//! One key with its value, in one allocation.
//!
//! ```text
//!  byte 0       1..4      varint   varint  6 or 8 bytes   klen   the rest
//! +--------+------------+-------+----------+------------+-----+-----------------------------+
//! | flags  | access     | klen  | vlen     | deadline   | key | value: bytes inline,        |
//! | (8)    | (24, LRU   |       | (inline  | (if set,   |     | or an i64, or a pointer to  |
//! |        |  or LFU)   |       |  only)   |  unix ms)  |     | a long string or an object  |
//! +--------+------------+-------+----------+------------+-----+-----------------------------+
//! flags: bits 0-1 form of the value, bit 2 has a deadline, bit 3 string grown in place ("raw"),
//! bit 4 the deadline is later than the year 10889 and has 8 bytes, bit 5 the mark by which a table
//! knows what its pass has shown
//! ```
//!
//! # Invariants
//! - The allocation's size follows from the header alone ([`allocated`]), so freeing needs no more.
//! - A pointer in the value part owns what it points to: dropping the record drops it.
//! - Nothing is aligned past the first byte: every multi-byte field is read unaligned.
//!
//! # Why not a struct with a box for the value?
//! It takes three allocations and two more cache misses for a key of 16 and a value of 3 bytes.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Values up to this long stand in the record; longer ones in an allocation of their own.
pub const INLINE_BYTES_MAX: usize = 512;

/// Allocations are multiples of this, so that a value may change a little in place.
const GRAIN: usize = 16;

const FORM_INLINE: u8 = 0;
const FORM_INT: u8 = 1;
const FORM_LONG: u8 = 2;
const FORM_OBJECT: u8 = 3;
const FORM_MASK: u8 = 3;
const HAS_DEADLINE: u8 = 4;
const RAW: u8 = 8;
const FAR: u8 = 16;
/// The mark of a record: tables say what it means.
pub(crate) const MARK: u8 = 32;

/// Deadlines up to this one, in the year 10889, take six bytes.
const NEAR_MS_MAX: u64 = (1 << 48) - 1;

/// The latest deadline: what commands can say.
pub const DEADLINE_MS_MAX: u64 = i64::MAX.unsigned_abs();

/// The flags that a deadline sets.
fn deadline_flags(deadline: Option<u64>) -> u8 {
    match deadline {
        None => 0,
        Some(0..=NEAR_MS_MAX) => HAS_DEADLINE,
        Some(_) => HAS_DEADLINE | FAR,
    }
}

/// Bytes of the deadline of a record with these flags.
#[inline]
fn deadline_len(flags: u8) -> usize {
    if flags & HAS_DEADLINE == 0 {
        0
    } else {
        6 + usize::from(flags & FAR) / 8
    }
}

const _: () = assert!(FAR / 8 == 2);

/// A value on its way into a record, or out of one.
#[derive(Debug, PartialEq)]
pub enum Value<'a, T> {
    /// A string, copied into the record when short.
    Bytes(&'a [u8]),
    /// A string that is a canonical integer.
    Int(i64),
    /// A long string, moved.
    Long(Box<Vec<u8>>),
    /// Anything else.
    Object(Box<T>),
}

/// A value seen in a record.
#[derive(Debug, PartialEq)]
pub enum ValueRef<'a, T> {
    /// A string.
    Bytes(&'a [u8]),
    /// A string that is a canonical integer.
    Int(i64),
    /// Anything else.
    Object(&'a T),
}

impl<T> Clone for ValueRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ValueRef<'_, T> {}

/// An owned record: what stands in a table's slot.
pub struct Record<T> {
    raw: Raw,
    owns: PhantomData<Box<T>>,
}

/// A record seen in a table.
pub struct RecordRef<'a, T> {
    raw: Raw,
    sees: PhantomData<&'a T>,
}

impl<T> Clone for RecordRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for RecordRef<'_, T> {}

/// The address of a live record, and reading at offsets from it.
#[derive(Clone, Copy)]
struct Raw(NonNull<u8>);

// SAFETY: a record owns its bytes and its `T`, like a box.
unsafe impl<T: Send> Send for Record<T> {}
// SAFETY: through a shared record only shared reads of its bytes and its `T` are possible.
unsafe impl<T: Sync> Sync for Record<T> {}

/// Where the parts of a record lie.
#[derive(Clone, Copy)]
struct Parts {
    flags: u8,
    deadline_at: usize,
    key_at: usize,
    key_len: usize,
    value_at: usize,
    /// Bytes of the value part.
    value_len: usize,
}

impl Parts {
    fn total(&self) -> usize {
        self.value_at + self.value_len
    }
}

fn allocated(total: usize) -> usize {
    total.next_multiple_of(GRAIN)
}

fn varint_len(value: usize) -> usize {
    match value {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        0x20_0000..=0xfff_ffff => 4,
        _ => 5,
    }
}

impl Raw {
    #[inline]
    fn at(self, offset: usize) -> *mut u8 {
        // SAFETY: callers pass offsets inside the allocation, whose size is `allocated(total)`.
        unsafe { self.0.as_ptr().add(offset) }
    }

    /// # Safety
    /// Five bytes at `offset` are inside the allocation or the varint is shorter and fits.
    unsafe fn write_varint(self, offset: usize, value: usize) -> usize {
        let (mut rest, mut at) = (value, offset);
        loop {
            #[allow(clippy::cast_possible_truncation)] // Masked to seven bits.
            let low = (rest & 0x7f) as u8;
            rest >>= 7;
            // SAFETY: by this function's contract.
            unsafe { self.at(at).write(low | if rest > 0 { 0x80 } else { 0 }) };
            at += 1;
            if rest == 0 {
                return at - offset;
            }
        }
    }

    #[inline]
    fn read_varint(self, offset: usize) -> (usize, usize) {
        // SAFETY: `shell` wrote a varint here, and its last byte has the high bit clear.
        let first = unsafe { self.at(offset).read() };
        if first < 0x80 {
            return (first as usize, offset + 1);
        }
        let (mut value, mut shift, mut at) = ((first & 0x7f) as usize, 7, offset + 1);
        loop {
            // SAFETY: as above; the bytes before had the high bit set.
            let byte = unsafe { self.at(at).read() };
            value |= ((byte & 0x7f) as usize) << shift;
            at += 1;
            shift += 7;
            if byte < 0x80 {
                return (value, at);
            }
        }
    }

    fn write_word(self, offset: usize, word: u64) {
        // SAFETY: called for value parts of 8 bytes only.
        unsafe { self.at(offset).cast::<u64>().write_unaligned(word) }
    }

    fn read_word(self, offset: usize) -> u64 {
        // SAFETY: called for value parts of 8 bytes only.
        unsafe { self.at(offset).cast::<u64>().read_unaligned() }
    }

    #[inline]
    fn flags(self) -> u8 {
        // SAFETY: the first byte is always written.
        unsafe { self.0.read() }
    }

    fn set_flags(self, flags: u8) {
        // SAFETY: the first byte is inside the allocation; only a `Record`, which owns it, calls
        // this.
        unsafe { self.0.write(flags) }
    }

    #[inline]
    fn parts(self) -> Parts {
        let flags = self.flags();
        let (key_len, mut at) = self.read_varint(4);
        let mut value_len = 8;
        if flags & FORM_MASK == FORM_INLINE {
            (value_len, at) = self.read_varint(at);
        }
        let deadline_at = at;
        let key_at = at + deadline_len(flags);
        Parts {
            flags,
            deadline_at,
            key_at,
            key_len,
            value_at: key_at + key_len,
            value_len,
        }
    }

    #[inline]
    fn slice<'a>(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: callers pass ranges of initialised bytes inside the allocation.
        unsafe { std::slice::from_raw_parts(self.at(at), len) }
    }

    fn pointer<P>(self, at: usize) -> *mut P {
        #[allow(clippy::cast_possible_truncation)] // Tidemill's targets have 64-bit pointers.
        std::ptr::with_exposed_provenance_mut(self.read_word(at) as usize)
    }

    fn fits_in_place(self, parts: &Parts, len: usize) -> bool {
        len <= INLINE_BYTES_MAX
            && varint_len(len) == varint_len(parts.value_len)
            && allocated(parts.value_at + len) == allocated(parts.total())
    }
}

impl<'a, T> RecordRef<'a, T> {
    /// The key.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        let parts = self.raw.parts();
        self.raw.slice(parts.key_at, parts.key_len)
    }

    /// The value.
    #[inline]
    pub fn value(self) -> ValueRef<'a, T> {
        let parts = self.raw.parts();
        match parts.flags & FORM_MASK {
            FORM_INLINE => ValueRef::Bytes(self.raw.slice(parts.value_at, parts.value_len)),
            FORM_INT => ValueRef::Int(self.raw.read_word(parts.value_at).cast_signed()),
            // SAFETY: the word is a pointer from `Box::into_raw` that this record owns.
            FORM_LONG => ValueRef::Bytes(unsafe { &*self.raw.pointer::<Vec<u8>>(parts.value_at) }),
            // SAFETY: as above.
            _ => ValueRef::Object(unsafe { &*self.raw.pointer::<T>(parts.value_at) }),
        }
    }

    /// Milliseconds of Unix time after which the key is dead.
    #[inline]
    pub fn deadline(self) -> Option<u64> {
        if self.raw.flags() & HAS_DEADLINE == 0 {
            return None;
        }
        let parts = self.raw.parts();
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(self.raw.slice(parts.deadline_at, 6));
        if parts.flags & FAR != 0 {
            bytes[6..].copy_from_slice(self.raw.slice(parts.deadline_at + 6, 2));
        }
        Some(u64::from_le_bytes(bytes))
    }

    /// The 24 bits of the eviction policy: last use, or frequency.
    #[inline]
    pub fn access(self) -> u32 {
        let bytes = self.raw.slice(1, 3);
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0])
    }

    /// Whether the string was grown in place, which Redis names `raw` however short it is.
    pub fn is_raw(self) -> bool {
        self.raw.flags() & RAW != 0
    }

    /// Bytes of this record's own allocation.
    pub fn allocated_bytes(self) -> usize {
        allocated(self.raw.parts().total())
    }

    /// Bytes of a long string's own allocation; 0 for other forms.
    pub fn long_bytes(self) -> usize {
        let parts = self.raw.parts();
        if parts.flags & FORM_MASK != FORM_LONG {
            return 0;
        }
        // SAFETY: the word is a pointer from `Box::into_raw` that this record owns.
        let long = unsafe { &*self.raw.pointer::<Vec<u8>>(parts.value_at) };
        size_of::<Vec<u8>>() + long.capacity()
    }

    /// The mark: 0 or [`MARK`].
    #[inline]
    pub(crate) fn mark(self) -> u8 {
        self.raw.flags() & MARK
    }

    /// The record's address, to be shown.
    pub fn address(self) -> *const u8 {
        self.raw.0.as_ptr()
    }

    /// The record's address.
    #[inline]
    pub(crate) fn raw(self) -> NonNull<u8> {
        self.raw.0
    }
}

impl<T> Record<T> {
    /// Makes a record.
    ///
    /// # Panics
    /// When the key is 4 GiB long or longer, which the protocol's limits exclude.
    pub fn new(key: &[u8], value: Value<'_, T>, deadline: Option<u64>) -> Self {
        assert!(
            u32::try_from(key.len()).is_ok(),
            "a key of {} bytes",
            key.len()
        );
        let value = match value {
            Value::Bytes(bytes) if bytes.len() > INLINE_BYTES_MAX => {
                Value::Long(Box::new(bytes.to_vec()))
            }
            other => other,
        };
        let (form, value_len) = match &value {
            Value::Bytes(bytes) => (FORM_INLINE, bytes.len()),
            Value::Int(_) => (FORM_INT, 8),
            Value::Long(_) => (FORM_LONG, 8),
            Value::Object(_) => (FORM_OBJECT, 8),
        };
        let flags = form | deadline_flags(deadline);
        let record = Self::shell(flags, 0, key, value_len, deadline.unwrap_or(0));
        let at = record.raw.parts().value_at;
        match value {
            // SAFETY: `shell` made room for `value_len` bytes at `value_at`.
            Value::Bytes(bytes) => unsafe {
                record
                    .raw
                    .at(at)
                    .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            },
            Value::Int(int) => record.raw.write_word(at, int.cast_unsigned()),
            Value::Long(long) => record
                .raw
                .write_word(at, Box::into_raw(long).expose_provenance() as u64),
            Value::Object(object) => {
                record
                    .raw
                    .write_word(at, Box::into_raw(object).expose_provenance() as u64);
            }
        }
        record
    }

    /// A record with header, lengths, deadline and key in place and a value part of `value_len`
    /// uninitialised bytes.
    fn shell(flags: u8, access: u32, key: &[u8], value_len: usize, deadline: u64) -> Self {
        let inline = flags & FORM_MASK == FORM_INLINE;
        let head = 4
            + varint_len(key.len())
            + if inline { varint_len(value_len) } else { 0 }
            + deadline_len(flags);
        let total = head + key.len() + value_len;
        let layout = Layout::from_size_align(allocated(total), 8).expect("below 5 GiB");
        // SAFETY: the layout's size is at least 5 bytes.
        let ptr = unsafe { alloc(layout) };
        let Some(ptr) = NonNull::new(ptr) else {
            handle_alloc_error(layout)
        };
        let record = Self {
            raw: Raw(ptr),
            owns: PhantomData,
        };
        // SAFETY: `head + key.len()` bytes are inside the allocation, which nobody else has yet.
        unsafe {
            ptr.write(flags);
            record
                .raw
                .at(1)
                .copy_from_nonoverlapping(access.to_le_bytes().as_ptr(), 3);
            let mut at = 4 + record.raw.write_varint(4, key.len());
            if inline {
                at += record.raw.write_varint(at, value_len);
            }
            record
                .raw
                .at(at)
                .copy_from_nonoverlapping(deadline.to_le_bytes().as_ptr(), deadline_len(flags));
            at += deadline_len(flags);
            record
                .raw
                .at(at)
                .copy_from_nonoverlapping(key.as_ptr(), key.len());
        }
        record
    }

    /// # Safety
    /// `ptr` came from [`Record::into_raw`] and is given back once.
    #[inline]
    pub(crate) unsafe fn from_raw(ptr: NonNull<u8>) -> Self {
        Self {
            raw: Raw(ptr),
            owns: PhantomData,
        }
    }

    /// # Safety
    /// `ptr` came from [`Record::into_raw`], and the record is neither changed nor freed for `'a`.
    #[inline]
    pub(crate) unsafe fn view_raw<'a>(ptr: NonNull<u8>) -> RecordRef<'a, T>
    where
        T: 'a,
    {
        RecordRef {
            raw: Raw(ptr),
            sees: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).raw.0
    }

    /// The record, to be read.
    #[inline]
    pub fn view(&self) -> RecordRef<'_, T> {
        RecordRef {
            raw: self.raw,
            sees: PhantomData,
        }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.view().key()
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> ValueRef<'_, T> {
        self.view().value()
    }

    /// Milliseconds of Unix time after which the key is dead.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        self.view().deadline()
    }

    /// The 24 bits of the eviction policy: last use, or frequency.
    #[inline]
    pub fn access(&self) -> u32 {
        self.view().access()
    }

    /// Bytes of this record's own allocation.
    pub fn allocated_bytes(&self) -> usize {
        self.view().allocated_bytes()
    }

    /// The object, where the value is one.
    pub fn object_mut(&mut self) -> Option<&mut T> {
        let parts = self.raw.parts();
        if parts.flags & FORM_MASK != FORM_OBJECT {
            return None;
        }
        // SAFETY: the word is a pointer from `Box::into_raw` that this record owns exclusively.
        Some(unsafe { &mut *self.raw.pointer::<T>(parts.value_at) })
    }

    /// Sets the 24 bits of the eviction policy.
    #[inline]
    pub fn set_access(&mut self, access: u32) {
        // SAFETY: bytes 1 to 3 are the access field, held exclusively.
        unsafe {
            self.raw
                .at(1)
                .copy_from_nonoverlapping(access.to_le_bytes().as_ptr(), 3)
        }
    }

    /// Changes the 24 bits of the eviction policy; writes only where they differ.
    #[inline]
    pub fn update_access(&mut self, update: impl FnOnce(u32) -> u32) {
        let old = self.access();
        let new = update(old);
        if new != old {
            self.set_access(new);
        }
    }

    /// Sets the mark: 0 or [`MARK`].
    #[inline]
    pub(crate) fn set_mark(&mut self, mark: u8) {
        self.raw.set_flags(self.raw.flags() & !MARK | mark);
    }

    /// Replaces the value and returns what the old one held outside the record. The deadline, the
    /// access bits, the mark and the key stay; the string is no longer `raw`.
    pub fn set_value(&mut self, value: Value<'_, T>) -> Displaced<T> {
        let parts = self.raw.parts();
        if let Value::Bytes(bytes) = &value
            && parts.flags & FORM_MASK == FORM_INLINE
            && self.raw.fits_in_place(&parts, bytes.len())
        {
            // SAFETY: `fits_in_place` says that the lengths take the same bytes and that the value
            // ends inside the allocation. `bytes` is not part of this record: we hold it mutably.
            unsafe {
                self.raw
                    .write_varint(4 + varint_len(parts.key_len), bytes.len());
                self.raw
                    .at(parts.value_at)
                    .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
            self.raw.set_flags(parts.flags & !RAW);
            return Displaced::Nothing;
        }
        if let Value::Int(int) = &value
            && parts.flags & FORM_MASK == FORM_INT
        {
            self.raw.write_word(parts.value_at, int.cast_unsigned());
            return Displaced::Nothing;
        }
        let mut new = Record::new(self.key(), value, self.deadline());
        new.set_access(self.access());
        new.set_mark(parts.flags & MARK);
        std::mem::swap(self, &mut new);
        new.into_displaced()
    }

    /// Sets or clears the deadline.
    pub fn set_deadline(&mut self, deadline: Option<u64>) {
        let parts = self.raw.parts();
        let others = parts.flags & !(HAS_DEADLINE | FAR);
        let flags = others | deadline_flags(deadline);
        if flags == parts.flags {
            let bytes = deadline.unwrap_or(0).to_le_bytes();
            // SAFETY: the bytes at `deadline_at`, of which there are as many as these flags say,
            // are the deadline, held exclusively.
            unsafe {
                self.raw
                    .at(parts.deadline_at)
                    .copy_from_nonoverlapping(bytes.as_ptr(), deadline_len(flags));
            }
            return;
        }
        let at = deadline.unwrap_or(0);
        let new = Self::shell(flags, self.access(), self.key(), parts.value_len, at);
        let to = new.raw.at(new.raw.parts().value_at);
        // SAFETY: both records have `value_len` bytes of value; they are different allocations. A
        // pointer in the value moves to the new record: the old one is freed below without dropping
        // what it points to.
        unsafe { to.copy_from_nonoverlapping(self.raw.at(parts.value_at), parts.value_len) }
        std::mem::replace(self, new).free_shell();
    }

    /// Makes the string at least `len` bytes long, filling with zeros, and returns all of it to be
    /// written to. An integer becomes its digits. Growth is amortised: what grows past a record
    /// moves to an allocation with room to spare. `None` when the value is no string.
    pub fn grow_bytes(&mut self, len: usize) -> Option<&mut [u8]> {
        let parts = self.raw.parts();
        match parts.flags & FORM_MASK {
            FORM_OBJECT => return None,
            FORM_INT => {
                let mut digits = [0; 20];
                let text = crate::decimal::format(
                    self.raw.read_word(parts.value_at).cast_signed(),
                    &mut digits,
                );
                self.set_value(Value::Bytes(text));
                return self.grow_bytes(len);
            }
            FORM_INLINE if len > parts.value_len && !self.raw.fits_in_place(&parts, len) => {
                let mut grown = Vec::with_capacity(len.max(2 * parts.value_len));
                grown.extend_from_slice(self.raw.slice(parts.value_at, parts.value_len));
                grown.resize(len, 0);
                if len <= INLINE_BYTES_MAX / 4 {
                    self.set_value(Value::Bytes(&grown));
                } else {
                    self.set_value(Value::Long(Box::new(grown)));
                }
            }
            FORM_INLINE if len > parts.value_len => {
                // SAFETY: `fits_in_place` holds: the varint keeps its length and the bytes up to
                // `len` are inside the allocation.
                unsafe {
                    self.raw.write_varint(4 + varint_len(parts.key_len), len);
                    self.raw
                        .at(parts.value_at + parts.value_len)
                        .write_bytes(0, len - parts.value_len);
                }
            }
            _ => {}
        }
        self.raw.set_flags(self.raw.flags() | RAW);
        let parts = self.raw.parts();
        if parts.flags & FORM_MASK == FORM_LONG {
            // SAFETY: the word is a pointer from `Box::into_raw` that this record owns exclusively.
            let long = unsafe { &mut *self.raw.pointer::<Vec<u8>>(parts.value_at) };
            if len > long.len() {
                long.resize(len, 0);
            }
            return Some(long);
        }
        // SAFETY: `value_len` initialised bytes inside the allocation, held exclusively.
        Some(unsafe {
            std::slice::from_raw_parts_mut(self.raw.at(parts.value_at), parts.value_len)
        })
    }

    /// Frees the record's own allocation but not what its value points to.
    fn free_shell(self) {
        let layout = Layout::from_size_align(self.allocated_bytes(), 8).expect("as allocated");
        let ptr = self.into_raw();
        // SAFETY: allocated in `shell` with this layout; `into_raw` gave up ownership.
        unsafe { dealloc(ptr.as_ptr(), layout) }
    }

    /// What the value holds outside the record; the record itself is freed.
    pub fn into_displaced(self) -> Displaced<T> {
        let parts = self.raw.parts();
        let displaced = match parts.flags & FORM_MASK {
            // SAFETY: the word is a pointer from `Box::into_raw`; `free_shell` below does not drop
            // it, so this box is its only owner.
            FORM_LONG => Displaced::Long(unsafe {
                Box::from_raw(self.raw.pointer::<Vec<u8>>(parts.value_at))
            }),
            FORM_OBJECT => {
                // SAFETY: as above.
                Displaced::Object(unsafe { Box::from_raw(self.raw.pointer::<T>(parts.value_at)) })
            }
            _ => Displaced::Nothing,
        };
        self.free_shell();
        displaced
    }

    /// The same value and deadline under another key.
    #[must_use]
    pub fn rekeyed(self, key: &[u8]) -> Self {
        let parts = self.raw.parts();
        let deadline = self.deadline().unwrap_or(0);
        let new = Self::shell(parts.flags, self.access(), key, parts.value_len, deadline);
        let to = new.raw.at(new.raw.parts().value_at);
        // SAFETY: as in `set_deadline`: same value length, different allocations, ownership moves.
        unsafe { to.copy_from_nonoverlapping(self.raw.at(parts.value_at), parts.value_len) }
        self.free_shell();
        new
    }
}

impl<T> Drop for Record<T> {
    fn drop(&mut self) {
        // SAFETY: `self` is not used again; the copy is consumed by `into_displaced`, which frees
        // the allocation and hands over what the value points to.
        let copy = unsafe { Self::from_raw(self.raw.0) };
        drop(copy.into_displaced());
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Record<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record")
            .field("key", &self.key())
            .field("value", &self.value())
            .field("deadline", &self.deadline())
            .finish()
    }
}

/// What a replaced or removed value held outside its record: to be dropped by whoever has time.
#[derive(Debug)]
pub enum Displaced<T> {
    /// It was all in the record.
    Nothing,
    /// A long string.
    Long(Box<Vec<u8>>),
    /// An object.
    Object(Box<T>),
}

#[cfg(test)]
mod tests;
