//! Scheduling of the threads of a probe: the parameters, and the policy that the kernel set.

use latlab_core::cpulist::CpuList;
use latlab_core::record::Schedule;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result, failed};
use latlab_part::part::permission;
use latlab_sys::root::Root;
use latlab_sys::sched::{self, Policy};
use latlab_sys::{cpu, thread};
use std::io;

/// Scheduling parameters of a probe with its own measuring threads.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub struct Scheduling {
    /// Scheduling policy of the measuring threads
    #[arg(long, default_value = "fifo", value_parser = ["fifo", "rr", "deadline", "other"])]
    pub policy: String,
    /// Real-time priority under fifo and rr; 99 is used by the kernel's own threads
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub priority: u32,
    /// Timer slack to set; the kernel's default is 50us, and 0 for real-time policies
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slack: Option<Nanos>,
    /// CPU time per period under deadline; default: a fifth of the period
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runtime: Option<Nanos>,
}

/// Scheduling parameters of throughput probes and loads, whose tasks are `SCHED_OTHER` by default.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub struct TaskScheduling {
    /// Scheduling policy of all tasks of the workload
    #[arg(long, default_value = "other", value_parser = ["other", "fifo", "rr"])]
    policy: String,
    /// Their real-time priority under fifo and rr
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    priority: u32,
}

impl TaskScheduling {
    /// Returns the scheduling of the thread that starts the tasks, which inherit its policy.
    pub fn scheduling(&self) -> Scheduling {
        let TaskScheduling { policy, priority } = self.clone();
        Scheduling { policy, priority, slack: None, runtime: None }
    }

    /// Fails if the kernel refuses the policy.
    pub fn check(&self) -> Result<()> {
        self.scheduling().check()
    }

    /// Fails if the kernel refuses the policy. The message ends with the advice `instead`.
    pub fn check_with_alternative(&self, instead: &str) -> Result<()> {
        self.scheduling().try_policy(instead)
    }
}

/// When the threads of different CPUs wake up, relative to each other.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Spread evenly over the period, which disturbs them least.
    Shifted,
    /// All at the same time, which disturbs them most.
    Aligned,
}

/// Alternative that ends the message about a refused policy.
const INSTEAD: &str = "; or measure as an ordinary task with --policy other";

/// Sets policy, timer slack and affinity of the calling thread, reads the policy back, and returns
/// the effective schedule.
pub(super) fn set_up(
    cpus: &CpuList,
    interval: Option<Nanos>,
    wanted: &Scheduling,
) -> Result<Schedule> {
    let policy = policy(interval, wanted)?;
    let on_cpu = |what: &str, e: io::Error| failed(&format!("CPU {cpus}: {what}"), e);
    if let Some(slack) = wanted.slack {
        sched::set_slack(slack).map_err(|e| on_cpu("setting the timer slack", e))?;
    }
    // The policy comes first: to be migrated, the thread has to run once more, for which an
    // ordinary task on a busy CPU has to wait.
    sched::set_policy(policy).map_err(|e| permission::refused(&wanted.policy, &e, INSTEAD))?;
    // The kernel admits a deadline task only if it may use every CPU of its root domain.
    if wanted.policy != "deadline" {
        cpu::pin(cpus).map_err(|e| match cpus.minus(&cpu::online(&Root::default())) {
            gone if gone.is_empty() => on_cpu("setting the CPU affinity", e),
            gone => failed(&format!("CPU {gone}"), "it went offline before it was measured"),
        })?;
        let bound = cpu::allowed().map_err(|e| on_cpu("reading the CPU affinity", e))?;
        // The kernel leaves out CPUs that are offline or not in the thread's cpuset.
        if bound != *cpus {
            let why = format!(
                "CPU {cpus}: the kernel allows only CPU {bound}: name CPUs that are online and in this \
                 cpuset with --cpus"
            );
            return Err(Failure::failed(why));
        }
    }
    let slack = sched::slack().map_err(|e| on_cpu("reading the timer slack", e))?;
    let effective = sched::policy().map_err(|e| on_cpu("reading the scheduling policy", e))?;
    if effective != policy {
        let why = format!("CPU {cpus}: the kernel set {effective:?} instead of {policy:?}");
        return Err(Failure::failed(why));
    }
    let priority = match effective {
        Policy::Fifo(priority) | Policy::Rr(priority) => priority,
        Policy::Other | Policy::Deadline { .. } => 0,
    };
    Ok(Schedule { policy: wanted.policy.clone(), priority, slack })
}

fn policy(interval: Option<Nanos>, wanted: &Scheduling) -> Result<Policy> {
    if wanted.policy != "deadline" {
        return Ok(wanted.policy_with_offset(0));
    }
    let Some(period) = interval else {
        let why = "policy=deadline needs a probe with an interval, and this one has none: use policy=fifo";
        return Err(Failure::failed(why));
    };
    let runtime = wanted.runtime.unwrap_or(Nanos(period.0 / 5));
    Ok(Policy::Deadline { runtime, period })
}

impl Scheduling {
    /// Fails unless the policy has real-time priorities, with `below` of them left below the
    /// measuring threads' priority; or if the kernel refuses it. The message does not offer
    /// policy=other, which can't replace them here.
    pub fn check_priorities(&self, probe: &str, below: u32) -> Result<()> {
        if !matches!(self.policy.as_str(), "fifo" | "rr") {
            return Err(Failure::failed(format!(
                "{probe}: tasks of policy={} have no priorities, which this probe needs: use \
                 policy=fifo or policy=rr",
                self.policy
            )));
        }
        if self.priority > below {
            return self.try_policy("");
        }
        Err(Failure::failed(format!(
            "{probe}: priority={} is too low, other tasks of the probe need {below} priorities \
             below it: use priority={} or more",
            self.priority,
            below + 1
        )))
    }

    /// Fails if the kernel refuses the policy. Deadline is only decided later, with the period.
    pub fn check(&self) -> Result<()> {
        self.try_policy(INSTEAD)
    }

    /// As [`Scheduling::check`]; also fails if the policy does not allow pinning to one CPU.
    pub fn check_pinned(&self, probe: &str) -> Result<()> {
        if self.policy != "deadline" {
            return self.check();
        }
        Err(Failure::failed(format!(
            "{probe}: the measuring thread must be pinned to one CPU, and a deadline task can't be: \
             use policy=fifo, rr or other"
        )))
    }

    /// Sets the policy on a thread that does nothing else. The message of a refusal ends with what
    /// to do `instead`.
    fn try_policy(&self, instead: &str) -> Result<()> {
        let tried = thread::on_its_own(|| sched::set_policy(self.policy_with_offset(0)));
        tried.map_err(|e| permission::refused(&self.policy, &e, instead))
    }

    /// Returns the policy of a task whose real-time priority differs by `offset` from the measuring
    /// threads' priority. `SCHED_OTHER` has no such offset.
    pub fn policy_with_offset(&self, offset: i32) -> Policy {
        let priority = self.priority.saturating_add_signed(offset).clamp(1, 99);
        match self.policy.as_str() {
            "fifo" => Policy::Fifo(priority),
            "rr" => Policy::Rr(priority),
            _ => Policy::Other,
        }
    }
}
