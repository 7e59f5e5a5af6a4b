//! Fuzz target: `latlab_fuzz::programs::diagnosis`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::programs::diagnosis(bytes));
