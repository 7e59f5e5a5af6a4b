//! Fuzz target: `latlab_fuzz::programs::events`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::programs::events(bytes));
