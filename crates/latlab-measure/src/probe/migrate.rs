//! Migration: time until a task runs on another CPU.

use super::Probe;
use crate::rig::{Pacing, Rig, Sampler, Scheduling, SecondTask};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::cpu::{self, Affinity};
use latlab_sys::futex::Futex;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Measures the time from a request to run a task on another CPU until the task runs there.
///
/// Either the task migrates itself: from the call of `sched_setaffinity` until it runs on the
/// requested CPU, which involves the stopper thread of the CPU it leaves. Or it is woken from
/// another CPU: from the call that wakes it until it runs, which involves an inter-processor
/// interrupt. rt-migrate-test of rt-tests checks that this happens; here it is timed.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Migrate {
    /// Reason to run on another CPU: the task's own affinity, or a wake-up from another CPU
    #[arg(long, default_value = "affinity")]
    by: Trigger,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
enum Trigger {
    Affinity,
    Wakeup,
}

impl Describe for Migrate {
    const ABOUT: About = About {
        name: "migrate",
        summary: "time from a migration or a remote wake-up until the task runs",
    };
}

impl Probe for Migrate {
    fn check(&self, cpus: &CpuList) -> Result<()> {
        if cpus.len() > 1 {
            return self.scheduling.check_pinned(Self::ABOUT.name);
        }
        Err(Failure::unsupported(format!(
            "migrate: this needs two CPUs, and CPU {cpus} is one: name more with --cpus, or measure \
             on a machine that has more (a profile with cpus = 2)"
        )))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        const TIMEOUT: Nanos = Nanos::from_secs(10);
        let bindings: Vec<(u32, Affinity)> =
            rig.cpus().iter().map(|cpu| (cpu, Affinity::to(&CpuList::from_iter([cpu])))).collect();
        let spans = match self.by {
            Trigger::Affinity => [("asked to move", "running on the other CPU")],
            Trigger::Wakeup => [("woken from another CPU", "running")],
        };
        let (name, pacing) = (Self::ABOUT.name, Pacing::BackToBack(TIMEOUT));
        rig.on_all_cpus(name, &spans, pacing, &self.scheduling, |sampler| match self.by {
            Trigger::Affinity => migrate(sampler, &bindings),
            Trigger::Wakeup => self.wake(sampler, &bindings),
        })
    }
}

/// Migrates from each CPU to the next, and from the last to the first.
fn migrate(sampler: &mut Sampler<'_>, bindings: &[(u32, Affinity)]) -> io::Result<()> {
    let (last, _) = bindings.split_last().ok_or(io::ErrorKind::InvalidInput)?;
    last.1.take()?;
    sampler.start_at(clock::now());
    for (cpu, binding) in bindings.iter().cycle() {
        if !sampler.running() {
            break;
        }
        let requested = clock::now();
        binding.take()?;
        let now = clock::now();
        check_cpu(*cpu)?;
        sampler.record(0, now, now - requested);
        sampler.advance_and_pause(now);
    }
    Ok(())
}

impl Migrate {
    /// Wakes, from the first CPU, a task that sleeps on each of the others in turn.
    fn wake(&self, sampler: &mut Sampler<'_>, bindings: &[(u32, Affinity)]) -> io::Result<()> {
        let (first, others) = bindings.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (futex, ran) = (Futex::new()?, AtomicU64::new(0));
        first.1.take()?;
        let sleep = |task: &SecondTask<'_>| sleep_on_each(task, others, &futex, &ran);
        sampler.with_second_task(self.scheduling.policy_with_offset(0), sleep, |sampler| {
            sampler.start_at(clock::now());
            while sampler.running() {
                let Some((woken, ran)) = wake_once(sampler, &futex, &ran)? else { break };
                sampler.record(0, ran, ran - woken);
                sampler.advance_and_pause(clock::now());
            }
            Ok(())
        })
    }
}

/// Wakes the task once it sleeps. Until then this thread sleeps itself, since the task may have to
/// run on this CPU first. Returns when the task was woken and when it ran; none at the end of the
/// run.
fn wake_once(
    sampler: &mut Sampler<'_>,
    futex: &Futex,
    ran: &AtomicU64,
) -> io::Result<Option<(Nanos, Nanos)>> {
    let mut woken = clock::now();
    while futex.wake_all() == 0 {
        if !sampler.running() {
            return Ok(None);
        }
        clock::wait_for(Nanos::from_micros(20))?;
        woken = clock::now();
    }
    loop {
        match ran.swap(0, Acquire) {
            0 if sampler.running() => std::hint::spin_loop(),
            0 => return Ok(None),
            time => return Ok(Some((woken, Nanos(time)))),
        }
    }
}

fn sleep_on_each(
    task: &SecondTask<'_>,
    bindings: &[(u32, Affinity)],
    futex: &Futex,
    ran: &AtomicU64,
) -> io::Result<()> {
    for (cpu, binding) in bindings.iter().cycle() {
        binding.take()?;
        futex.wait();
        let now = clock::now();
        if !task.running() {
            break;
        }
        check_cpu(*cpu)?;
        ran.store(now.0, Release);
    }
    Ok(())
}

/// Fails unless the calling thread runs on this CPU.
fn check_cpu(wanted: u32) -> io::Result<()> {
    let cpu = cpu::current()?;
    if cpu == wanted {
        return Ok(());
    }
    Err(io::Error::other(format!("the task ran on CPU {cpu}, not on CPU {wanted}")))
}
