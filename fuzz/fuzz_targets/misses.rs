//! Fuzz target: `latlab_fuzz::records::misses`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::records::misses(bytes));
