//! latlab

mod commands;
mod failure;

use clap::Parser as _;

/// A microscope for Linux latency.
#[derive(clap::Parser)]
enum Latlab {
    Doctor(commands::doctor::Doctor),
}

#[expect(clippy::print_stderr, reason = "the one place where a failure is told")]
fn main() -> std::process::ExitCode {
    let Latlab::Doctor(doctor) = Latlab::parse();
    match doctor.run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("latlab: {failure}");
            failure.exit_code()
        }
    }
}
