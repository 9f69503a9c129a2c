//! Ctrl-C: the first ends the load and lets the report be written, the second ends the program.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The flag that Ctrl-C sets.
pub fn flag() -> &'static AtomicBool {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: a signal that comes when the flag is already set ends the program.
            // Without the handlers, Ctrl-C ends the program at once, as it does for anybody.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag));
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        flag
    })
}

/// Whether the user wants to stop.
pub fn is_set() -> bool {
    flag().load(Ordering::Relaxed)
}
