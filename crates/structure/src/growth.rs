//! How the buffers of the compact encodings grow and shrink.
//!
//! Collections stay small for most of their life, and there are many of them: doubling would leave
//! a quarter of their memory unused. A buffer grows by an eighth, so that a push costs about nine
//! copied bytes a byte at worst, and gives memory back when less than half is in use.

/// Allocators hand out multiples of this.
const STEP: usize = 16;

/// The capacity to ask for when `needed` bytes are about to be in use.
#[inline]
pub(crate) fn capacity_for(needed: usize) -> usize {
    (needed + needed / 8).next_multiple_of(STEP)
}

/// Makes room for `needed` bytes in all.
#[inline]
pub(crate) fn reserve(buf: &mut Vec<u8>, needed: usize) {
    if needed > buf.capacity() {
        buf.reserve_exact(capacity_for(needed) - buf.len());
    }
}

/// A copy with as much room as the original, so that nobody's sums change.
pub(crate) fn copy_of<T: Clone>(original: &Vec<T>) -> Vec<T> {
    let mut copy = Vec::with_capacity(original.capacity());
    copy.extend_from_slice(original);
    copy
}

/// Gives memory back once less than half of it is in use.
#[inline]
pub(crate) fn relax(buf: &mut Vec<u8>) {
    if buf.capacity() > 2 * capacity_for(buf.len()) {
        buf.shrink_to(buf.len().next_multiple_of(STEP));
    }
}
