//! Fuzz target: `latlab_fuzz::programs::kernel_image`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latlab_fuzz::programs::kernel_image(bytes));
