//! How the threads of a probe are scheduled: what may be asked for, and what the kernel gave.

use crate::failure::{Failure, Result, failed};
use crate::permission;
use latlab_core::cpulist::CpuList;
use latlab_core::record::Schedule;
use latlab_core::time::Nanos;
use latlab_sys::cpu;
use latlab_sys::sched::{self, Policy};
use std::io;

/// What every probe with threads of its own may be told about their scheduling.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Scheduling {
    /// Scheduling policy of the measuring threads
    #[arg(long, default_value = "fifo", value_parser = ["fifo", "rr", "deadline", "other"])]
    pub(crate) policy: String,
    /// Real-time priority under fifo and rr; 99 belongs to the kernel's own threads
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) priority: u32,
    /// Timer slack to set; the kernel's default is 50us, and none for real-time policies
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) slack: Option<Nanos>,
    /// CPU time per period under deadline; a fifth of the period if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) runtime: Option<Nanos>,
}

/// What probes of throughput and loads, whose tasks are ordinary ones, may be told about their
/// scheduling.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tasks {
    /// Scheduling policy of all tasks that take part
    #[arg(long, default_value = "other", value_parser = ["other", "fifo", "rr"])]
    policy: String,
    /// Their real-time priority under fifo and rr
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    priority: u32,
}

impl Tasks {
    /// The scheduling of the thread that starts them: they have its policy from it.
    pub(crate) fn scheduling(&self) -> Scheduling {
        let Tasks { policy, priority } = self.clone();
        Scheduling { policy, priority, slack: None, runtime: None }
    }

    /// Refuses what the kernel does, before anything starts; but for deadline, of which it decides
    /// with the period.
    pub(crate) fn check(&self) -> Result<()> {
        self.scheduling().check()
    }

    /// The same; what to do `instead` ends a refusal.
    pub(crate) fn check_or(&self, instead: &str) -> Result<()> {
        self.scheduling().try_out(instead)
    }
}

/// When the threads of different CPUs wake up.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// Spread evenly over the period, so that they disturb each other least.
    Shifted,
    /// All at the same moment, so that they disturb each other most.
    Aligned,
}

/// What else can be done where a policy is refused.
const INSTEAD: &str = "; or measure as an ordinary task with --policy other";

/// Binds the thread to its CPU and gives it its policy; what it really got is read back.
pub(super) fn set_up(
    cpus: &CpuList,
    interval: Option<Nanos>,
    wanted: &Scheduling,
) -> Result<Schedule> {
    let policy = policy(interval, wanted)?;
    let on_cpu = |what: &str, e: io::Error| failed(&format!("CPU {cpus}: {what}"), e);
    if let Some(slack) = wanted.slack {
        sched::set_slack(slack).map_err(|e| on_cpu("the timer slack can't be set", e))?;
    }
    // Its policy first: to be bound, it has to get to run once more, and an ordinary task on a busy
    // CPU waits for that.
    sched::set_policy(policy).map_err(|e| permission::refused(&wanted.policy, &e, INSTEAD))?;
    // The kernel admits deadline tasks only where they may use every CPU of their domain.
    if wanted.policy != "deadline" {
        cpu::pin(cpus).map_err(|e| on_cpu("a thread can't be bound", e))?;
    }
    let slack = sched::slack().map_err(|e| on_cpu("the timer slack can't be read", e))?;
    let effective = sched::policy().map_err(|e| on_cpu("the policy can't be read", e))?;
    if effective != policy {
        let why = format!("CPU {cpus}: the kernel gave {effective:?} instead of {policy:?}");
        return Err(Failure::Failed(why));
    }
    let priority = match effective {
        Policy::Fifo(priority) | Policy::Rr(priority) => priority,
        Policy::Other | Policy::Deadline { .. } => 0,
    };
    Ok(Schedule { policy: wanted.policy.clone(), priority, slack })
}

fn policy(interval: Option<Nanos>, wanted: &Scheduling) -> Result<Policy> {
    if wanted.policy != "deadline" {
        return Ok(wanted.policy_at(0));
    }
    let Some(period) = interval else {
        let why = "policy=deadline is for probes with an interval: this one has none";
        return Err(Failure::Failed(why.to_owned()));
    };
    let runtime = wanted.runtime.unwrap_or(Nanos(period.0 / 5));
    Ok(Policy::Deadline { runtime, period })
}

impl Scheduling {
    /// Refuses what gives no order to the measuring threads and so many ranks below them, and
    /// where the kernel does: ordinary tasks are no way out here.
    pub(crate) fn check_ranks(&self, probe: &str, below: u32) -> Result<()> {
        if !matches!(self.policy.as_str(), "fifo" | "rr") {
            return Err(Failure::Failed(format!(
                "{probe}: tasks of policy={} have no priorities, on which this depends: use \
                 policy=fifo or policy=rr",
                self.policy
            )));
        }
        if self.priority > below {
            return self.try_out("");
        }
        Err(Failure::Failed(format!(
            "{probe}: priority={} leaves no room for {below} below it, where other tasks are to \
             stand: use priority={} or more",
            self.priority,
            below + 1
        )))
    }

    /// Refuses what the kernel does, before anything starts.
    pub(crate) fn check(&self) -> Result<()> {
        self.try_out(INSTEAD)
    }

    /// As [`Scheduling::check`], and refuses what can't be bound to one CPU.
    pub(crate) fn check_bound(&self, probe: &str) -> Result<()> {
        if self.policy != "deadline" {
            return self.check();
        }
        Err(Failure::Failed(format!(
            "{probe}: a deadline task can't be bound to one CPU, on which this depends: give \
             policy=fifo, rr or other"
        )))
    }

    /// Takes the policy on a thread that does nothing else. What to do `instead` ends a refusal.
    fn try_out(&self, instead: &str) -> Result<()> {
        let tried = std::thread::scope(|scope| {
            let thread = scope.spawn(|| sched::set_policy(self.policy_at(0)));
            thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        });
        tried.map_err(|e| permission::refused(&self.policy, &e, instead))
    }

    /// The policy of a task that is to stand so far above (or below) the measuring threads.
    /// Ordinary tasks all stand the same.
    pub(crate) fn policy_at(&self, above: i32) -> Policy {
        let priority = self.priority.saturating_add_signed(above).clamp(1, 99);
        match self.policy.as_str() {
            "fifo" => Policy::Fifo(priority),
            "rr" => Policy::Rr(priority),
            _ => Policy::Other,
        }
    }
}
