//! Fuzz target: `latlab_fuzz::texts::claim`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::texts::claim(bytes));
