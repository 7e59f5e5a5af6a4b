//! `latlab exec`: starts a program with scheduling attributes, here or in a guest.

use super::complete;
use super::guest_program::GuestProgram;
use super::target_options::TargetOptions;
use latlab_adapt as adapt;
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_format as format;
use latlab_measure::engine;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_part::part::permission;
use latlab_sys::root::Root;
use latlab_sys::sched::{self, Policy};
use latlab_sys::{cpu, file, process};
use std::ffi::OsString;
use std::io;

const EXAMPLES: &str = "\
Examples:
  latlab exec --fifo 80 --cpus 2 -- ./control  SCHED_FIFO, priority 80, on CPU 2
  latlab exec --slack 1us -- sleep 0.01        a SCHED_OTHER task with 1 us of timer slack
  latlab exec --on lab:rt -- uname -r          in a guest with a PREEMPT_RT kernel";

/// Start a program with a scheduling policy, CPU affinity and timer slack
///
/// latlab replaces itself with the program (execve), which keeps the terminal, receives signals and
/// sets the exit code. With --on the program runs in a guest, which has only the program, its
/// libraries and the files of --with, all at their absolute paths; in the laboratory (lab:PROFILE)
/// its timing repeats exactly, wherever latlab is started from.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Exec {
    /// SCHED_FIFO with this priority (1 to 99)
    #[arg(long, value_name = "PRIORITY", group = "policy", value_parser = clap::value_parser!(u32).range(1..=99))]
    fifo: Option<u32>,
    /// SCHED_RR with this priority (1 to 99)
    #[arg(long, value_name = "PRIORITY", group = "policy", value_parser = clap::value_parser!(u32).range(1..=99))]
    rr: Option<u32>,
    /// SCHED_DEADLINE with this runtime in each period, e.g. 2ms/10ms
    #[arg(long, value_name = "RUNTIME/PERIOD", group = "policy", value_parser = deadline)]
    deadline: Option<Policy>,
    /// SCHED_OTHER regardless of inherited policy
    #[arg(long, group = "policy")]
    other: bool,
    /// Restrict the program to these CPUs, e.g. 0-3,8
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,
    /// Timer slack; has no effect on real-time policies
    #[arg(long, value_name = "TIME")]
    slack: Option<Nanos>,
    /// Limit on the exit latency of idle states while the program runs (PM quality of service); 0
    /// keeps all CPUs out of idle states
    #[arg(long, value_name = "TIME")]
    cpu_dma_latency: Option<Nanos>,
    /// Request from latlab adapt that the interrupts of these device groups are prioritised while
    /// the program runs, e.g. audio,network
    #[arg(long, value_name = "GROUP,…", conflicts_with = "on")]
    irq_group: Option<String>,
    #[command(flatten)]
    guest: GuestProgram,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND", value_hint = complete::COMMAND)]
    command: Vec<OsString>,
    #[command(flatten)]
    options: TargetOptions,
}

fn deadline(text: &str) -> std::result::Result<Policy, String> {
    let (runtime, period) = text.split_once('/').ok_or("write RUNTIME/PERIOD, as 2ms/10ms")?;
    let time = |text: &str| text.parse::<Nanos>().map_err(|e| e.to_string());
    let (runtime, period) = (time(runtime)?, time(period)?);
    if runtime.0 < 1024 || runtime > period {
        return Err("the runtime must be at least 1024ns and at most the period".to_owned());
    }
    Ok(Policy::Deadline { runtime, period })
}

impl Exec {
    /// Returns only from a guest, with the program's exit code: here the program replaces latlab.
    pub(super) fn run(&self) -> Result<u8> {
        if self.guest.on.is_some() {
            return self.run_in_guest();
        }
        self.options.check("native")?;
        self.exec_program()
    }

    fn run_in_guest(&self) -> Result<u8> {
        let (words, command) = (self.arguments(), &self.command);
        self.guest.run(words, None, command, &self.options, &mut format::pass)
    }

    /// The arguments of latlab in the guest, for the same attributes.
    fn arguments(&self) -> Vec<String> {
        let flags = [
            Some("exec".to_owned()),
            self.fifo.map(|priority| format!("--fifo={priority}")),
            self.rr.map(|priority| format!("--rr={priority}")),
            self.deadline.map(|policy| match policy {
                Policy::Deadline { runtime, period } => {
                    format!("--deadline={}ns/{}ns", runtime.0, period.0)
                }
                _ => String::new(),
            }),
            self.other.then(|| "--other".to_owned()),
            self.cpus.as_ref().map(|cpus| format!("--cpus={cpus}")),
            self.slack.map(|slack| format!("--slack={}ns", slack.0)),
            self.cpu_dma_latency.map(|latency| format!("--cpu-dma-latency={}ns", latency.0)),
        ];
        flags.into_iter().flatten().collect()
    }

    fn exec_program(&self) -> Result<u8> {
        if let Some(cpus) = &self.cpus {
            // sched_setaffinity() succeeds if only one of the CPUs exists.
            engine::check_cpus(cpus, &cpu::online(&Root::default()))?;
            cpu::pin(cpus).context(&format!("CPUs {cpus}"))?;
        }
        if let Some(slack) = self.slack {
            sched::set_slack(slack).context("the timer slack")?;
        }
        if let Some(latency) = self.cpu_dma_latency {
            file::hold_cpu_dma_latency(latency).map_err(|e| no_cpu_dma_latency(&e))?;
        }
        if let Some(groups) = &self.irq_group {
            adapt::request_groups(groups)?;
        }
        if let Some((name, policy)) = self.policy() {
            sched::set_policy(policy).map_err(|e| permission::refused(name, &e, ""))?;
        }
        let program = &self.command[0];
        let error = process::exec_program(program, &self.command[1..]);
        Err(failed(&program.to_string_lossy(), error))
    }

    fn policy(&self) -> Option<(&'static str, Policy)> {
        let fifo = self.fifo.map(|priority| ("fifo", Policy::Fifo(priority)));
        let rr = self.rr.map(|priority| ("rr", Policy::Rr(priority)));
        let deadline = self.deadline.map(|policy| ("deadline", policy));
        fifo.or(rr).or(deadline).or(self.other.then_some(("other", Policy::Other)))
    }
}

fn no_cpu_dma_latency(error: &io::Error) -> Failure {
    Failure::unsupported(format!("/dev/cpu_dma_latency can't be opened ({error}): it needs root"))
}
