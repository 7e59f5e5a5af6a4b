//! Fuzz target: `latlab_fuzz::records::report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::records::report(bytes));
