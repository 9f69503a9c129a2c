//! The manifest of the log: any bytes are refused or understood, and what is understood is written
//! so that it is understood again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use persist::manifest::Manifest;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = Manifest::parse(bytes)
        && manifest != Manifest::default()
    {
        assert_eq!(Manifest::parse(&manifest.render()), Ok(manifest));
    }
});
