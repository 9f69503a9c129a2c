//! Asking the processor for a cache line before it is needed.
//!
//! A hint only: it never faults, whatever the address, and reads nothing in the language's sense.

/// Asks for the line at `address` to be brought into all cache levels.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that may be given any address; it cannot fault.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: PRFM is a hint that may be given any address; it cannot fault, and it touches
    // neither memory as the language sees it, nor the stack, nor flags.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address,
            options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn takes_any_address() {
        let value = 7_u64;
        for address in [
            &raw const value,
            std::ptr::null(),
            std::ptr::without_provenance(1),
        ] {
            prefetch(address);
        }
        prefetch(std::ptr::without_provenance::<u8>(usize::MAX));
        assert_eq!(value, 7);
    }
}
