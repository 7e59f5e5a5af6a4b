//! Migration: how long it takes until a task runs on another CPU.

use super::Probe;
use crate::failure::{Failure, Result};
use crate::registry::About;
use crate::rig::{Lane, Partner, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::cpu::{self, Binding};
use latlab_sys::futex::Futex;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Has a task run on one CPU after the other, and records how long each change takes.
///
/// Either the task moves itself with `sched_setaffinity`, from the call until it runs on the CPU that
/// it asked for, which takes the kernel's stopper thread of the CPU it leaves; or it is woken from
/// another CPU, from the call that wakes it until it runs, which takes an interrupt between the
/// two. What rt-migrate-test of rt-tests checks to happen at all is measured here.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Migrate {
    /// What makes the task run elsewhere: its own wish, or a wake-up from another CPU
    #[arg(long, default_value = "affinity")]
    by: By,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
enum By {
    Affinity,
    Wakeup,
}

impl Probe for Migrate {
    const ABOUT: About =
        About { name: "migrate", summary: "how long until a task runs on another CPU" };

    fn check(&self, cpus: &CpuList) -> Result<()> {
        if cpus.len() > 1 {
            return self.scheduling.check_bound(Self::ABOUT.name);
        }
        Err(Failure::Unsupported(format!(
            "migrate: a task moves between two CPUs, and CPU {cpus} is one: name more with --cpus, \
             or measure on a machine that has more (a profile with cpus = 2)"
        )))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        const LIMIT: Nanos = Nanos::from_secs(10);
        let bindings: Vec<(u32, Binding)> =
            rig.cpus().iter().map(|cpu| (cpu, Binding::to(&CpuList::from_iter([cpu])))).collect();
        let spans = match self.by {
            By::Affinity => [("asked to move", "running on the other CPU")],
            By::Wakeup => [("woken from another CPU", "running")],
        };
        let (name, rhythm) = (Self::ABOUT.name, Rhythm::Within(LIMIT));
        rig.on_all_cpus(name, &spans, rhythm, &self.scheduling, |lane| match self.by {
            By::Affinity => move_on(lane, &bindings),
            By::Wakeup => self.wake(lane, &bindings),
        })
    }
}

/// Moves from each CPU to the next, and from the last to the first.
fn move_on(lane: &mut Lane<'_>, bindings: &[(u32, Binding)]) -> io::Result<()> {
    let (last, _) = bindings.split_last().ok_or(io::ErrorKind::InvalidInput)?;
    last.1.take()?;
    lane.begin_at(clock::now());
    for (cpu, binding) in bindings.iter().cycle() {
        if !lane.running() {
            break;
        }
        let asked = clock::now();
        binding.take()?;
        let now = clock::now();
        is_on(*cpu)?;
        lane.sample(0, now, now - asked);
        lane.rest(now);
    }
    Ok(())
}

impl Migrate {
    /// Wakes, from the first CPU, a task that sleeps on each of the others in turn.
    fn wake(&self, lane: &mut Lane<'_>, bindings: &[(u32, Binding)]) -> io::Result<()> {
        let (first, others) = bindings.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (bed, ran) = (Futex::new()?, AtomicU64::new(0));
        first.1.take()?;
        let sleep = |partner: &Partner<'_>| sleep_on_each(partner, others, &bed, &ran);
        lane.beside(self.scheduling.policy_at(0), sleep, |lane| {
            lane.begin_at(clock::now());
            while lane.running() {
                let Some((woken, ran)) = wake_once(lane, &bed, &ran) else { break };
                lane.sample(0, ran, ran - woken);
                lane.rest(clock::now());
            }
            Ok(())
        })
    }
}

/// Wakes the task when it sleeps, and sleeps as long as it does not: it may have to come here
/// first. When it was woken, and when it ran; None when it is over.
fn wake_once(lane: &mut Lane<'_>, bed: &Futex, ran: &AtomicU64) -> Option<(Nanos, Nanos)> {
    let mut woken = clock::now();
    while bed.wake_all() == 0 {
        if !lane.running() {
            return None;
        }
        clock::sleep_for(Nanos::from_micros(20));
        woken = clock::now();
    }
    loop {
        match ran.swap(0, Acquire) {
            0 if lane.running() => std::hint::spin_loop(),
            0 => return None,
            time => return Some((woken, Nanos(time))),
        }
    }
}

fn sleep_on_each(
    partner: &Partner<'_>,
    bindings: &[(u32, Binding)],
    bed: &Futex,
    ran: &AtomicU64,
) -> io::Result<()> {
    for (cpu, binding) in bindings.iter().cycle() {
        binding.take()?;
        bed.wait();
        let now = clock::now();
        if !partner.running() {
            break;
        }
        is_on(*cpu)?;
        ran.store(now.0, Release);
    }
    Ok(())
}

fn is_on(wanted: u32) -> io::Result<()> {
    let cpu = cpu::current()?;
    if cpu == wanted {
        return Ok(());
    }
    Err(io::Error::other(format!("the task ran on CPU {cpu}, not on CPU {wanted}")))
}
