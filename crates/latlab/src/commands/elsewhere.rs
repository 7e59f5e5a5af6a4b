//! What `run` and `exec` can be told about targets that are not this machine.

use crate::engine;
use crate::errand::Errand;
use crate::failure::{Failure, Result};
use crate::guest::Accel;
use crate::kernel::Progress;
use crate::rig::Watch;
use clap::ValueEnum as _;
use latlab_core::machine::TimeDomain;
use latlab_core::time::Nanos;
use latlab_sys::cpu;
use latlab_sys::signal::Signals;

/// The options.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "On other targets")]
pub(super) struct Elsewhere {
    /// Guests that may run at the same time [default: as many as there are CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Ask the laboratory again, even where it knows what comes out
    #[arg(long)]
    fresh: bool,
    /// Give up on a guest or a board after this time on the wall
    #[arg(long, value_name = "TIME", value_parser = super::positive)]
    limit: Option<Nanos>,
    /// What runs the instructions of a vm: target [default: kvm where it works]
    #[arg(long)]
    accel: Option<Accel>,
}

impl Elsewhere {
    /// Refuses what means nothing on this machine.
    pub(super) fn refuse_here(&self) -> Result<()> {
        let given = [
            ("--jobs", self.jobs.is_some()),
            ("--fresh", self.fresh),
            ("--limit", self.limit.is_some()),
            ("--accel", self.accel.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                Err(Failure::Failed(format!("{option} is for other targets: name one with --on")))
            }
            None => Ok(()),
        }
    }

    /// What is said here, and what was said before where nothing is said here.
    pub(super) fn and(&self, before: &Elsewhere) -> Elsewhere {
        Elsewhere {
            jobs: self.jobs.or(before.jobs),
            fresh: self.fresh || before.fresh,
            limit: self.limit.or(before.limit),
            accel: self.accel.or(before.accel),
        }
    }

    /// Whether what is known is to be measured again.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// How many guests may run at the same time, where that was said.
    pub(super) fn jobs(&self) -> Option<u16> {
        self.jobs
    }

    /// The options but for `--jobs`, as they can be typed.
    pub(super) fn words(&self) -> Vec<String> {
        let limit = self.limit.map(|limit| format!("--limit={}ns", limit.0));
        let accel = self.accel.and_then(|accel| accel.to_possible_value());
        let accel = accel.map(|accel| format!("--accel={}", accel.get_name()));
        let fresh = self.fresh.then(|| "--fresh".to_owned());
        [fresh, limit, accel].into_iter().flatten().collect()
    }

    /// The options as an errand.
    pub(super) fn errand<'a>(
        &self,
        signals: &'a Signals,
        watch: &'a mut dyn Watch,
        progress: &'a mut dyn Progress,
    ) -> Errand<'a> {
        let cpus = || cpu::allowed().map_or(1, |cpus| cpus.len());
        Errand {
            here: |plan, signals, watch| engine::run(plan, TimeDomain::Silicon, signals, watch),
            signals,
            watch,
            progress,
            keep: None,
            jobs: self.jobs.map_or_else(cpus, usize::from),
            fresh: self.fresh,
            accel: self.accel,
            limit: self.limit,
            ended: false,
        }
    }
}
