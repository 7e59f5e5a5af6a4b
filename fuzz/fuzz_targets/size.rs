//! Fuzz target: `latlab_fuzz::texts::size`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::texts::size(bytes));
