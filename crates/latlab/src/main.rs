//! latlab: a microscope for Linux latency.

mod commands;
#[expect(dead_code, reason = "this command needs only one of them")]
mod failure;
mod format;

use clap::Parser as _;
use std::process::ExitCode;

/// A microscope for Linux latency.
#[derive(Debug, clap::Parser)]
enum Latlab {
    Report(commands::report::Report),
}

#[expect(clippy::print_stderr, reason = "the last word of a failed command")]
fn main() -> ExitCode {
    let Latlab::Report(report) = Latlab::parse();
    match report.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("latlab: {failure}");
            failure.exit_code()
        }
    }
}
