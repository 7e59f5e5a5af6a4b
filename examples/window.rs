//! A program with marks for latlab scan, which measures how late an interrupt wakes a task while
//! this program reads a megabyte of zeros: rustc -O examples/window.rs && latlab scan -- ./window

use std::env;
use std::fs::File;
use std::io::{Read, Result, Write};
use std::os::fd::FromRawFd;

fn main() -> Result<()> {
    let number = env::var("LATLAB_SCAN").expect("latlab scan starts this program");
    let number = number.parse().expect("LATLAB_SCAN is a file descriptor");
    // SAFETY: latlab scan has opened this descriptor for the program, and nothing else uses it.
    let mut marks = unsafe { File::from_raw_fd(number) };
    let (mut zero, mut zeros) = (File::open("/dev/zero")?, vec![0; 1 << 20]);
    for _ in 0..100 {
        marks.write_all(b"b")?;
        zero.read_exact(&mut zeros)?;
        marks.write_all(b"e")?;
    }
    Ok(())
}
