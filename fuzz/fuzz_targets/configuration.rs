//! Fuzz target: `latlab_fuzz::texts::configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::texts::configuration(bytes));
