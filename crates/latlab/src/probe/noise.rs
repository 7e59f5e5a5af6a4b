//! Noise: the time that a busy loop loses to everything else.

use super::{Probe, interval};
use crate::failure::{Failure, Result};
use crate::registry::About;
use crate::rig::{Lane, Rhythm, Rig, Scheduling, Share};
use latlab_core::cpulist::CpuList;
use latlab_core::machine::Machine;
use latlab_core::record::Warning;
use latlab_core::time::Nanos;
use latlab_sys::machine::counters;
use latlab_sys::root::Root;
use latlab_sys::{clock, cpu, machine};
use std::sync::{Mutex, PoisonError};

/// Reads the clock in a loop on each CPU and records each gap between two readings that is longer
/// than the threshold.
///
/// What oslat of rt-tests and the kernel's osnoise tracer ask: interrupts, threads above it, the
/// firmware and the hypervisor take the loop's time, and nothing in it can hide that. It is asleep
/// for the rest of each period, as osnoise is, so that the kernel can do on that CPU what it has
/// to. The first CPU is left out where all of several were asked for.
///
/// Figures of each CPU: the share of the time that went into gaps above the threshold, the largest
/// of them, how long it looked, how many loops there were and what the shortest took, which is what
/// looking costs. Beside them, where it can be read, what the hypervisor says that it stole, and
/// how often the firmware interrupted (SMI; Intel, /dev/cpu/N/msr).
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Noise {
    /// A shorter gap is no noise; oslat counts from 1us, osnoise from 5us
    #[arg(long, default_value = "1us")]
    threshold: Nanos,
    /// How long the loop runs in each period
    #[arg(long, default_value = "900ms", value_parser = interval)]
    busy: Nanos,
    /// The period
    #[arg(long, default_value = "1s", value_parser = interval)]
    period: Nanos,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

/// When the run ends: no rest goes beyond it.
fn end_of(lane: &Lane<'_>) -> Nanos {
    match lane.share(1) {
        Share::Until(end) => end,
        Share::Samples(_) => Nanos::MAX,
    }
}

/// What a loop noticed on its CPU.
#[derive(Clone, Copy)]
struct Noticed {
    cpu: u32,
    watched: Nanos,
    lost: Nanos,
    largest: Nanos,
    loops: u64,
    shortest: Nanos,
}

impl Probe for Noise {
    const ABOUT: About =
        About { name: "noise", summary: "the time that a busy loop loses to everything else" };

    fn comes(&self) -> bool {
        false
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        if self.busy < self.period {
            return self.scheduling.check_bound(Self::ABOUT.name);
        }
        let (busy, period) = (self.busy, self.period);
        Err(Failure::Failed(format!(
            "noise: busy={busy} of each {period} leaves nothing for the rest of the machine: give less"
        )))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let (root, span) = (Root::default(), ("last reading", "next reading"));
        let machine = machine::read(&root);
        let cpus = leave_one(rig, &machine.cpus);
        rig.warnings.extend(self.throttled(&root));
        let before = Beside::read(&root, &machine, &cpus);
        let noticed = Mutex::new(Vec::new());
        let each: Vec<CpuList> = cpus.iter().map(|cpu| CpuList::from_iter([cpu])).collect();
        let (name, rhythm) = (Self::ABOUT.name, Rhythm::Irregular);
        let done = rig.on_each_of(&each, name, &[span], rhythm, &self.scheduling, |lane| {
            let seen = self.look(lane, cpu::current()?);
            noticed.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            Ok(())
        });
        let mut noticed = noticed.into_inner().unwrap_or_else(PoisonError::into_inner);
        noticed.sort_by_key(|one| one.cpu);
        for one in noticed {
            one.report(rig);
        }
        Beside::read(&root, &machine, &cpus).report(rig, &before);
        done
    }
}

impl Noise {
    fn look(&self, lane: &mut Lane<'_>, cpu: u32) -> Noticed {
        let mut noticed = Noticed::on(cpu);
        let mut begin = clock::now();
        lane.begin_at(begin);
        while lane.running() {
            self.spin(lane, begin + self.busy, &mut noticed);
            if lane.running() {
                clock::sleep_until((begin + self.period).min(end_of(lane)));
                begin = clock::now();
                lane.pass(begin, 0);
            }
        }
        noticed
    }

    /// Looks until `end`. Time is measured on from behind what recording a gap took.
    fn spin(&self, lane: &mut Lane<'_>, end: Nanos, noticed: &mut Noticed) {
        let mut before = clock::now();
        while before < end && lane.running() {
            let mut now = clock::now();
            let gap = now - before;
            let is_noise = gap > self.threshold;
            if lane.counts() {
                noticed.add(gap, is_noise);
            }
            if is_noise {
                lane.sample(0, now, gap);
                now = clock::now();
            }
            lane.pass(now, 0);
            before = now;
        }
    }

    /// Whether the kernel takes the CPU from real-time tasks that run for so long, and with what
    /// consequence.
    fn throttled(&self, root: &Root) -> Option<Warning> {
        let of = |what| root.number::<i64>(format!("proc/sys/kernel/sched_rt_{what}_us"));
        let micros = |number: i64| u64::try_from(number).ok().map(Nanos::from_micros);
        let (most, window) = (micros(of("runtime")?)?, micros(of("period")?)?);
        let wanted = most_in(window, self.busy, self.period);
        (wanted > most && self.scheduling.policy != "other").then(|| {
            let text = format!(
                "noise runs for up to {wanted} of {window}, and the kernel lets real-time tasks run \
                 for {most}: what they lose is in the figures; give a shorter busy=, or \
                 --set rt_runtime_us=-1"
            );
            Warning::new("throttled", text)
        })
    }
}

impl Noticed {
    fn on(cpu: u32) -> Noticed {
        let (watched, lost, largest, shortest) = (Nanos(0), Nanos(0), Nanos(0), Nanos::MAX);
        Noticed { cpu, watched, lost, largest, loops: 0, shortest }
    }

    #[inline]
    fn add(&mut self, gap: Nanos, is_noise: bool) {
        self.loops += 1;
        self.watched = self.watched + gap;
        self.shortest = self.shortest.min(gap);
        if is_noise {
            self.lost = self.lost + gap;
            self.largest = self.largest.max(gap);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "what is lost is below what can be measured")]
    fn report(&self, rig: &mut Rig<'_>) {
        if self.loops == 0 {
            return;
        }
        let mut figure = |what: &str, value: f64, unit| {
            rig.figure(Noise::ABOUT.name, &format!("{what} on CPU {}", self.cpu), value, unit);
        };
        let share = self.lost.0 as f64 / self.watched.0.max(1) as f64;
        figure("share lost", 100.0 * share, "%");
        if self.lost > Nanos(0) {
            figure("largest gap", self.largest.0 as f64, "ns");
        }
        figure("time watched", self.watched.as_secs_f64(), "s");
        figure("loops", self.loops as f64, "loops");
        figure("shortest loop", self.shortest.0 as f64, "ns");
    }
}

/// What others count of what was taken away, for each CPU.
struct Beside(Vec<(u32, Option<u64>, Option<u64>)>);

impl Beside {
    fn read(root: &Root, machine: &Machine, cpus: &CpuList) -> Beside {
        let of = |cpu| {
            let smi = counters::smi(root, machine, cpu);
            (cpu, counters::steal_ticks_of(root, cpu), smi)
        };
        Beside(cpus.iter().map(of).collect())
    }

    #[expect(clippy::cast_precision_loss, reason = "what is lost is below what can be measured")]
    fn report(&self, rig: &mut Rig<'_>, before: &Beside) {
        const TICK_MS: f64 = 10.0;
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?) as f64);
        for ((cpu, steal, smi), (_, steal_before, smi_before)) in self.0.iter().zip(&before.0) {
            if let Some(ticks) = grown(*steal, *steal_before) {
                rig.figure("noise", &format!("steal time on CPU {cpu}"), ticks * TICK_MS, "ms");
            }
            if let Some(times) = grown(*smi, *smi_before) {
                rig.figure("noise", &format!("SMI on CPU {cpu}"), times, "interrupts");
            }
        }
    }
}

/// The CPUs to measure on: where they are all that there are, the first is left to everything
/// else. A single one is shared: the loop rests in each period.
fn leave_one(rig: &mut Rig<'_>, online: &CpuList) -> CpuList {
    let cpus = rig.cpus().clone();
    if cpus.len() < 2 || !online.minus(&cpus).is_empty() {
        return cpus;
    }
    let first = cpus.iter().take(1).collect();
    let text = format!(
        "noise left CPU {first} out: its loops take nearly all of a CPU, and one is left to \
         everything else; name the others with --cpus"
    );
    rig.warnings.push(Warning::new("housekeeping", text));
    cpus.minus(&first)
}

/// The most time that a loop runs in any stretch as long as `window`.
fn most_in(window: Nanos, busy: Nanos, period: Nanos) -> Nanos {
    let (whole, rest) = (window.0 / period.0, window.0 % period.0);
    Nanos(whole * busy.0 + rest.min(busy.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_runs_at_most_so_long_in_a_window() {
        let most = |busy, period| {
            let [busy, period] = [busy, period].map(Nanos::from_millis);
            most_in(Nanos::from_millis(1_000), busy, period)
        };
        assert_eq!(most(900, 1_000), Nanos::from_millis(900));
        assert_eq!(most(9_000, 10_000), Nanos::from_millis(1_000));
        assert_eq!(most(480, 500), Nanos::from_millis(960));
        assert_eq!(most(500, 600), Nanos::from_millis(900));
    }

    #[test]
    fn only_gaps_above_the_threshold_are_lost_time() {
        let mut noticed = Noticed::on(3);
        for (gap, is_noise) in [(30, false), (20, false), (2_000, true), (50, false)] {
            noticed.add(Nanos(gap), is_noise);
        }
        assert_eq!((noticed.watched, noticed.lost), (Nanos(2_100), Nanos(2_000)));
        assert_eq!((noticed.loops, noticed.shortest), (4, Nanos(20)));
        assert_eq!(noticed.largest, Nanos(2_000));
    }
}
