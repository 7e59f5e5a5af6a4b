//! Fuzz target: `latlab_fuzz::records::path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::records::path(bytes));
