//! Fuzz target: `latlab_fuzz::records::histogram`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::records::histogram(bytes));
