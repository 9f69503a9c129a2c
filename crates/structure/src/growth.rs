//! How the buffers of the compact encodings grow and shrink.
//!
//! Collections stay small for most of their life, and there are many of them: doubling would leave
//! a quarter of their memory unused. A buffer takes the whole of the size that an allocator hands
//! out anyway, so that nothing of it is lost, a push costs a few copied bytes a byte at worst, and
//! what is counted is what is taken. It gives memory back when less than half is in use.

/// Sizes are multiples of this up to [`EVEN_MAX`].
const STEP: usize = 16;
/// Beyond, there are four sizes to a doubling: so it is in mimalloc and in jemalloc.
const EVEN_MAX: usize = 128;

/// The capacity to ask for when `needed` bytes are about to be in use.
#[inline]
pub(crate) fn capacity_for(needed: usize) -> usize {
    if needed <= EVEN_MAX {
        return needed.next_multiple_of(STEP);
    }
    let quarter = 1 << ((needed - 1).ilog2() - 2);
    needed.next_multiple_of(quarter)
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
        buf.shrink_to(capacity_for(buf.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_the_sizes_of_allocators() {
        let sizes = [
            (0, 0),
            (1, 16),
            (100, 112),
            (128, 128),
            (129, 160),
            (160, 160),
            (207, 224),
            (225, 256),
            (256, 256),
            (257, 320),
            (4097, 5120),
            (5121, 6144),
        ];
        for (needed, capacity) in sizes {
            assert_eq!(capacity_for(needed), capacity, "{needed}");
        }
    }
}
