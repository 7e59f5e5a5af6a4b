//! Fuzz target: `latlab_fuzz::texts::recording`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::texts::recording(bytes));
