//! Fuzz target: `latlab_fuzz::programs::adapt_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::programs::adapt_log(bytes));
