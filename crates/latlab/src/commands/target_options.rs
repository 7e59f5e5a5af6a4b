//! Options for targets other than this machine, shared by the commands that measure.

use crate::target;
use clap::ValueEnum as _;
use latlab_core::time::Nanos;
use latlab_measure::engine;
use latlab_measure::session::{Accel, Limit, Session};
use latlab_part::failure::{Failure, Result};
use latlab_part::progress::Progress;
use latlab_part::progress::Watch;
use latlab_sys::cpu;
use latlab_sys::machine;
use latlab_sys::signal::Signals;

/// The names of the options.
pub(super) const OPTIONS: [&str; 5] = ["jobs", "fresh", "cold", "limit", "accel"];

/// The options.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Options for targets other than native")]
pub(super) struct TargetOptions {
    /// Number of guests of the laboratory to run at the same time [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Ignore cached results
    #[arg(long)]
    fresh: bool,
    /// Boot guests of the laboratory instead of restoring them from snapshots
    #[arg(long)]
    cold: bool,
    /// Stop waiting for a guest or an ssh: host after this much wall-clock time [default: for a
    /// guest 2min plus 50 times the measured time, for a program in a guest 620s plus 50 times the
    /// time of latlab check --for, both without the time in which QEMU waits for a CPU; for a host
    /// none]
    #[arg(long, value_name = "TIME", value_parser = super::positive)]
    limit: Option<Nanos>,
    /// QEMU accelerator of a vm: target [default: kvm if available]
    #[arg(long)]
    accel: Option<Accel>,
}

impl TargetOptions {
    /// Refuses options that have no effect on `target`.
    pub(super) fn check(&self, target: &str) -> Result<()> {
        let kind = target::kind(target);
        let given = [
            ("--jobs", self.jobs.is_some(), &["lab"][..]),
            ("--fresh", self.fresh, &["lab"]),
            ("--cold", self.cold, &["lab"]),
            ("--limit", self.limit.is_some(), &["lab", "vm", "ssh"]),
            ("--accel", self.accel.is_some(), &["vm"]),
        ];
        for (option, given, kinds) in given {
            if given && !kinds.contains(&kind) {
                let kinds = kinds.join(":, ");
                return Err(Failure::failed(format!(
                    "{option} has no effect on {target}: it is for {kinds}: targets (--on)"
                )));
            }
        }
        Ok(())
    }

    /// These options, and those of `defaults` that are not given here.
    pub(super) fn or(&self, defaults: &TargetOptions) -> TargetOptions {
        TargetOptions {
            jobs: self.jobs.or(defaults.jobs),
            fresh: self.fresh || defaults.fresh,
            cold: self.cold || defaults.cold,
            limit: self.limit.or(defaults.limit),
            accel: self.accel.or(defaults.accel),
        }
    }

    /// These options without `--fresh` and `--jobs`, each where that is true.
    pub(super) fn without(&self, fresh: bool, jobs: bool) -> TargetOptions {
        TargetOptions {
            fresh: self.fresh && !fresh,
            jobs: self.jobs.filter(|_| !jobs),
            ..self.clone()
        }
    }

    /// Whether cached results are ignored.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// The number of guests that may run at the same time, if it was given.
    pub(super) fn jobs(&self) -> Option<u16> {
        self.jobs
    }

    /// The options except `--jobs`, as command-line arguments.
    pub(super) fn arguments(&self) -> Vec<String> {
        let limit = self.limit.map(|limit| format!("--limit={}ns", limit.0));
        let accel = self.accel.and_then(|accel| accel.to_possible_value());
        let accel = accel.map(|accel| format!("--accel={}", accel.get_name()));
        let fresh = self.fresh.then(|| "--fresh".to_owned());
        let cold = self.cold.then(|| "--cold".to_owned());
        [fresh, cold, limit, accel].into_iter().flatten().collect()
    }

    /// The session of a target with these options.
    pub(super) fn session<'a>(
        &self,
        signals: &'a Signals,
        watch: &'a mut dyn Watch,
        progress: &'a mut dyn Progress,
    ) -> Session<'a> {
        let cpus = || cpu::allowed().map_or(1, |cpus| cpus.len());
        Session {
            here: |plan, signals, watch| engine::run(plan, machine::time_domain(), signals, watch),
            signals,
            watch,
            progress,
            keep: None,
            jobs: self.jobs.map_or_else(cpus, usize::from),
            fresh: self.fresh,
            cold: self.cold,
            accel: self.accel,
            limit: self.limit.map(Limit::WallClock),
            ended: false,
        }
    }
}
