//! Fuzz target: `latlab_fuzz::texts::protocol`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::texts::protocol(bytes));
