//! latlab measures the latency of Linux and explains it: all of the program, a library so that its
//! parsers can be fuzzed.
#![forbid(unsafe_code)]

mod commands;
pub mod study;
pub mod target;

use latlab_format as format;
use latlab_sys::{process, signal};
use std::process::ExitCode;

/// Bytes of stack for reading the command line, with some more.
const STACK: u64 = 512 << 10;

/// Carries out the command line of this process, or the work of a guest's init.
pub fn main() -> ExitCode {
    if process::is_no_op() {
        return ExitCode::SUCCESS;
    }
    if process::stack_limit().is_some_and(|limit| limit < STACK) {
        format::say("the limit on its stack is too low: run ulimit -s 1024");
        return ExitCode::from(2);
    }
    if let Err(error) = process::check_random() {
        format::say(&format!(
            "the kernel gives no random numbers, which latlab needs: getrandom(2): {error}"
        ));
        return ExitCode::from(2);
    }
    // Otherwise a full limit ends latlab as it ends any program.
    let _ = signal::survive_file_size_limit();
    match commands::dispatch(std::env::args_os()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            format::say(&failure.to_string());
            failure.exit_code()
        }
    }
}
