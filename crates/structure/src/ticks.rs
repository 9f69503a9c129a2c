//! The processor's own clock: the cheapest way to tell how long something took.
//!
//! It goes forward at a constant rate on every machine of the last decade, and takes a few
//! nanoseconds to read. What a tick lasts must be measured against a real clock.

/// The clock now, in ticks.
#[inline(always)]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: Linux lets user programs read the virtual counter; it touches no memory.
        unsafe {
            core::arch::asm!("mrs {0}, cntvct_el0", out(reg) ticks, options(nostack, nomem));
        }
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::now;

    #[test]
    fn goes_forward() {
        let began = now();
        let mut last = began;
        while last == began {
            let next = now();
            assert!(next >= last, "{next} after {last}");
            last = next;
        }
    }
}
