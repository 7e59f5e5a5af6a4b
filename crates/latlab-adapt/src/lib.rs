//! Adapting this machine: mechanisms decide which knobs are set, and everything is restored at the
//! end.
#![forbid(unsafe_code)]

mod adapter;
mod apply;
pub mod client;
pub mod control;
mod daemon;
mod decision_log;
mod dry_run;
mod knobs;
pub mod log_file;
mod log_thread;
mod mailbox;
pub mod mechanism;
mod observation;
mod precheck;
mod realtime_tasks;
mod reporter;
mod starvation;
mod task_events;
mod thread;
mod wakes;

pub use adapter::Adapted;
pub use client::{request_groups, status};
pub use daemon::{Daemon, Options};
pub use dry_run::dry_run;
pub use log_file::replay;
pub use log_thread::LogThread;
pub use thread::Adapting;

use latlab_core::plan::Setting;
use latlab_mechanism::configuration::Configuration;
use latlab_part::failure::{Failure, Result};

/// Refuses, before anything starts, mechanisms that can't be combined or have no effect on a
/// measurement, and settings of knobs that belong to one of the mechanisms.
pub fn check(names: &[String], settings: &[Setting]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    if let Some(name) = mechanism::only_in_daemon(names) {
        return Err(Failure::failed(format!(
            "--adapt={name} has no effect: only latlab adapt receives requests; leave it out"
        )));
    }
    let knobs = mechanism::adaptation(names, &Configuration::default())?.knobs();
    match settings.iter().find(|setting| knobs.contains(&setting.knob.as_str())) {
        Some(Setting { knob, .. }) => Err(Failure::failed(format!(
            "--set {knob} and --adapt would both set {knob}: leave one of them out"
        ))),
        None => Ok(()),
    }
}
