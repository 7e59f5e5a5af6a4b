//! The program of the laboratory's guests: their init process, and the workers of probes, loads and scans.
#![forbid(unsafe_code)]

use latlab_guest::{is_init, serve};
use latlab_measure::worker;
use latlab_sys::process;
use std::process::ExitCode;

#[expect(
    clippy::print_stderr,
    reason = "a worker reports its failure to the process that started it"
)]
fn main() -> ExitCode {
    if process::is_no_op() {
        return ExitCode::SUCCESS;
    }
    if is_init() {
        serve();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let served = match words.as_slice() {
        [kind, orders] => worker::serve(kind, orders),
        _ => None,
    };
    match served {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(failure)) => {
            eprintln!("latlab: {failure}");
            failure.exit_code()
        }
        None => {
            eprintln!(
                "latlab-guest: this is the init process of latlab's guests: run latlab instead"
            );
            ExitCode::from(2)
        }
    }
}
