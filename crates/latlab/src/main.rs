//! latlab measures the latency of Linux and explains it.
#![forbid(unsafe_code)]

mod adapt;
mod call;
mod cause;
mod commands;
mod engine;
mod explain;
mod failure;
mod format;
mod lab;
mod load;
mod lock;
mod mechanism;
mod message;
mod part;
mod probe;
mod progress;
mod rig;
mod scan;
mod session;
mod study;
mod target;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    if latlab_sys::process::is_no_op() {
        return ExitCode::SUCCESS;
    }
    if lab::is_init() {
        lab::serve();
    }
    // Otherwise a full limit ends latlab as it ends any program.
    let _ = latlab_sys::signal::survive_file_size_limit();
    match commands::dispatch(std::env::args_os()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            format::say(&failure.to_string());
            failure.exit_code()
        }
    }
}
