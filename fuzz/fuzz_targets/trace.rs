//! Fuzz target: `latlab_fuzz::records::trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::records::trace(bytes));
