//! `latlab exec`: start a program with real-time attributes.

use super::elsewhere::Elsewhere;
use crate::failure::{Failure, Result, failed};
use crate::format::progress::Bar;
use crate::format::{self, live};
use crate::guest::Program;
use crate::{adapt, engine, permission, target};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use latlab_sys::sched::{self, Policy};
use latlab_sys::signal::Signals;
use latlab_sys::{cpu, file, process};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Start a program with a real-time policy, bound to CPUs, with its own timer slack
///
/// latlab becomes the program: exit code, signals and terminal are the program's own. With --on
/// the program runs in a guest, with nothing of this machine but the files it was given: in the
/// laboratory (lab:PROFILE) its time repeats exactly.
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
    /// Say to latlab adapt which devices it needs until it ends, as audio,network
    #[arg(long, value_name = "GROUP,…", conflicts_with = "on")]
    irq_group: Option<String>,
    /// Run it in a guest: lab:PROFILE or vm:PROFILE (see: latlab list profiles)
    #[arg(long, value_name = "TARGET")]
    on: Option<String>,
    /// A file or folder that the program reads in the guest; its libraries come by themselves
    #[arg(long, value_name = "PATH", requires = "on")]
    with: Vec<PathBuf>,
    #[command(flatten)]
    elsewhere: Elsewhere,
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
    /// Returns where the program ran elsewhere, with its exit code.
    pub(super) fn run(&self) -> Result<u8> {
        if let Some(target) = &self.on {
            return self.run_on(target);
        }
        self.elsewhere.refuse_here()?;
        self.become_program()
    }

    fn run_on(&self, name: &str) -> Result<u8> {
        let target = target::find(name)?;
        let path = found(&self.command[0])?;
        let program = Program { words: self.words(&path)?, path, with: self.with.clone() };
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        let mut watch = live::view();
        let mut bar = Bar::new(&signals);
        let mut errand = self.elsewhere.errand(&signals, watch.as_mut(), &mut bar);
        target.exec(name, &program, &mut errand, &mut format::pass)
    }

    /// What is to be typed after `latlab exec` there, to the same effect.
    fn words(&self, path: &Path) -> Result<Vec<String>> {
        let flags = [
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
            Some("--".to_owned()),
        ];
        let mut words: Vec<String> = flags.into_iter().flatten().collect();
        let command = std::iter::once(path.as_os_str());
        for word in command.chain(self.command[1..].iter().map(OsString::as_os_str)) {
            let text = word.to_str().ok_or_else(|| {
                Failure::Failed(format!("{} is not text: a guest can't be told", word.display()))
            })?;
            words.push(text.to_owned());
        }
        Ok(words)
    }

    fn become_program(&self) -> Result<u8> {
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
        if let Some(groups) = &self.irq_group {
            adapt::ask(groups)?;
        }
        if let Some((name, policy)) = self.policy() {
            sched::set_policy(policy).map_err(|e| permission::refused(name, &e, ""))?;
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

/// The program that a shell would start.
fn found(name: &OsStr) -> Result<PathBuf> {
    let missing = || Failure::Failed(format!("{}: there is no such program", name.display()));
    let is_program = |path: &Path| {
        path.metadata()
            .is_ok_and(|there| there.is_file() && there.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(name);
    let place = if path.components().count() > 1 {
        std::path::absolute(path).ok().filter(|path| path.exists())
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&folders).map(|folder| folder.join(path));
        places.find(|place| is_program(place))
    };
    let place = place.ok_or_else(missing)?;
    // The folder as it is without links and `..`, which the guest does not have; the name stays.
    let folder = place.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(place.file_name()).map(|(folder, name)| folder.join(name)).ok_or_else(missing)
}

fn held_back(error: &io::Error) -> Failure {
    Failure::Unsupported(format!("/dev/cpu_dma_latency can't be held ({error}): it needs root"))
}
