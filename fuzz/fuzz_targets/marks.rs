//! Fuzz target: `latlab_fuzz::records::marks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::records::marks(bytes));
