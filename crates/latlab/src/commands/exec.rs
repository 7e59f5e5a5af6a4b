//! `latlab exec`: start a program with real-time attributes.

use crate::failure::{Failure, Result, failed};
use crate::{engine, permission};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use latlab_sys::sched::{self, Policy};
use latlab_sys::{cpu, file, process};
use std::ffi::OsString;
use std::io;

/// Start a program with a real-time policy, bound to CPUs, with its own timer slack
///
/// latlab becomes the program: exit code, signals and terminal are the program's own.
#[derive(Debug, clap::Args)]
pub(super) struct Exec {
    /// Real-time, first in first out, at this priority (1 to 99)
    #[arg(long, value_name = "PRIORITY", group = "policy", value_parser = clap::value_parser!(u32).range(1..=99))]
    fifo: Option<u32>,
    /// Real-time, round robin, at this priority (1 to 99)
    #[arg(long, value_name = "PRIORITY", group = "policy", value_parser = clap::value_parser!(u32).range(1..=99))]
    rr: Option<u32>,
    /// Deadline scheduling: CPU time and period, as 2ms/10ms
    #[arg(long, value_name = "RUNTIME/PERIOD", group = "policy", value_parser = deadline)]
    deadline: Option<Policy>,
    /// An ordinary task, whatever we are
    #[arg(long, group = "policy")]
    other: bool,
    /// Bind it to these CPUs, as 0-3,8
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,
    /// How late the kernel may fire its timers on purpose; has no effect on real-time policies
    #[arg(long, value_name = "TIME")]
    slack: Option<Nanos>,
    /// Longest wake-up from idle that is allowed while it runs; 0 keeps all CPUs out of idle states
    #[arg(long, value_name = "TIME")]
    cpu_dma_latency: Option<Nanos>,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn deadline(text: &str) -> std::result::Result<Policy, String> {
    let (runtime, period) = text.split_once('/').ok_or("write RUNTIME/PERIOD, as 2ms/10ms")?;
    let time = |text: &str| text.parse::<Nanos>().map_err(|e| e.to_string());
    let (runtime, period) = (time(runtime)?, time(period)?);
    if runtime.0 < 1024 || runtime > period {
        return Err("the runtime is at least 1024ns and at most the period".to_owned());
    }
    Ok(Policy::Deadline { runtime, period })
}

impl Exec {
    pub(super) fn run(&self) -> Result<()> {
        if let Some(cpus) = &self.cpus {
            // The kernel is content when it knows one of them.
            engine::check_cpus(cpus, &cpu::online(&Root::default()))?;
            cpu::pin(cpus).map_err(|e| failed(&format!("CPUs {cpus}"), e))?;
        }
        if let Some(slack) = self.slack {
            sched::set_slack(slack).map_err(|e| failed("the timer slack", e))?;
        }
        if let Some(latency) = self.cpu_dma_latency {
            file::hold_cpu_dma_latency(latency).map_err(|e| held_back(&e))?;
        }
        if let Some((name, policy)) = self.policy() {
            sched::set_policy(policy).map_err(|e| permission::refused(name, &e))?;
        }
        let program = &self.command[0];
        let error = process::become_program(program, &self.command[1..]);
        Err(failed(&program.to_string_lossy(), error))
    }

    fn policy(&self) -> Option<(&'static str, Policy)> {
        let fifo = self.fifo.map(|priority| ("fifo", Policy::Fifo(priority)));
        let rr = self.rr.map(|priority| ("rr", Policy::Rr(priority)));
        let deadline = self.deadline.map(|policy| ("deadline", policy));
        fifo.or(rr).or(deadline).or(self.other.then_some(("other", Policy::Other)))
    }
}

fn held_back(error: &io::Error) -> Failure {
    Failure::Unsupported(format!("/dev/cpu_dma_latency can't be held ({error}): it needs root"))
}
