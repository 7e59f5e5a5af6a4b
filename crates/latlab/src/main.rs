//! latlab: a microscope for Linux latency.
#![forbid(unsafe_code)]

mod adapt;
mod call;
mod cause;
mod commands;

mod driver;
mod engine;
mod errand;
mod explain;
mod failure;
mod format;
mod groups;
mod guest;
mod kernel;
mod load;
mod lock;
mod mechanism;
mod message;
mod meter;
mod needs;
mod permission;
mod probe;
mod profile;
mod registry;
mod rig;
mod scan;
mod slurm;
mod study;
mod target;
mod token;
mod traffic;
mod window;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    if latlab_sys::process::is_for_nothing() {
        return ExitCode::SUCCESS;
    }
    if guest::is_init() {
        guest::serve();
    }
    match commands::dispatch(std::env::args_os()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            format::say(&failure.to_string());
            failure.exit_code()
        }
    }
}
