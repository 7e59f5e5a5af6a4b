//! Fuzz target: `latlab_fuzz::programs::image`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::programs::image(bytes));
