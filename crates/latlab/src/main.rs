//! The program latlab.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    latlab::main()
}
