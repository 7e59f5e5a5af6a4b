//! Fuzz target: `latlab_fuzz::records::bound`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::records::bound(bytes));
