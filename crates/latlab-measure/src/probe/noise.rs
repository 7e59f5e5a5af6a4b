//! Noise: time that a busy loop loses to interrupts, other tasks and the host.

mod lost_time;
mod steal;

use super::{Probe, interval};
use crate::rig::{Pacing, Rig, Sampler, Scheduling, Share};
use latlab_core::cpulist::CpuList;
use latlab_core::machine::Machine;
use latlab_core::record::{Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result, lock, unpoisoned};
use latlab_part::part::{About, Describe};
use latlab_sys::root::Root;
use latlab_sys::{clock, cpu, machine};
use lost_time::LostTime;
use std::io;
use std::sync::Mutex;
use steal::StealAndSmi;

/// Measures the time from one clock reading of a busy loop to the next, and records each gap above
/// the threshold.
///
/// This is the measurement of oslat of rt-tests and of the kernel's osnoise tracer: interrupts,
/// higher-priority threads, the firmware and the hypervisor take time from the loop, which always
/// shows as a gap. As in osnoise, the loop sleeps for the rest of each period, so that the kernel
/// can do its work on that CPU. The first CPU is left out if several CPUs, and all of them, were
/// requested.
///
/// Figures of each CPU: the share of the time lost to gaps above the threshold, the largest gap,
/// the time that the loop ran, the number of loops, and the shortest loop, which is the resolution.
/// If they can be read, also the time stolen by the hypervisor and the number of firmware
/// interrupts (SMI; Intel, /dev/cpu/N/msr), both counted from the begin of the warm-up.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Noise {
    /// Shorter gaps do not count; oslat counts from 1us, osnoise from 5us
    #[arg(long, default_value = "1us")]
    threshold: Nanos,
    /// Time that the loop runs in each period
    #[arg(long, default_value = "900ms", value_parser = interval)]
    busy: Nanos,
    /// Period of the loop
    #[arg(long, default_value = "1s", value_parser = interval)]
    period: Nanos,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

/// Name of the probe.
const NAME: &str = "noise";

/// Returns when the run ends, beyond which the loop must not sleep.
fn end_of(sampler: &Sampler<'_>) -> Nanos {
    match sampler.next_share(1) {
        Share::Until(end) => end,
        Share::Samples(_) => Nanos::MAX,
    }
}

impl Describe for Noise {
    const ABOUT: About = About {
        name: NAME,
        summary: "time a busy loop loses to interrupts, other tasks and the host",
    };
}

impl Probe for Noise {
    fn supports_count(&self) -> bool {
        false
    }

    fn is_busy_loop(&self) -> bool {
        true
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        if self.busy < self.period {
            return self.scheduling.check_pinned(Self::ABOUT.name);
        }
        let (busy, period) = (self.busy, self.period);
        Err(Failure::failed(format!(
            "noise: busy={busy} of each {period} leaves no time for other tasks: give less"
        )))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let (root, span) = (Root::default(), ("last reading", "next reading"));
        let machine = machine::read(&root);
        let cpus = without_housekeeping(rig, &machine.cpus);
        rig.warnings.extend(self.throttling_warning(&machine));
        let before = StealAndSmi::read(&root, &machine, &cpus);
        let losses = Mutex::new(Vec::new());
        let each: Vec<CpuList> = cpus.iter().map(|cpu| CpuList::from_iter([cpu])).collect();
        let (name, pacing) = (Self::ABOUT.name, Pacing::Irregular);
        let done = rig.on_cpu_sets(&each, name, &[span], pacing, &self.scheduling, |sampler| {
            let lost = self.measure(sampler, cpu::current()?)?;
            lock(&losses).push(lost);
            Ok(())
        });
        let mut losses = unpoisoned(losses.into_inner());
        losses.sort_by_key(|lost| lost.cpu);
        for lost in losses {
            lost.report(rig);
        }
        StealAndSmi::read(&root, &machine, &cpus).report(rig, &before);
        done
    }
}

impl Noise {
    fn measure(&self, sampler: &mut Sampler<'_>, cpu: u32) -> io::Result<LostTime> {
        let mut lost = LostTime::on(cpu);
        let mut begin = clock::now();
        sampler.start_at(begin);
        while sampler.running() {
            self.spin(sampler, begin + self.busy, &mut lost);
            if sampler.running() {
                clock::wait_until((begin + self.period).min(end_of(sampler)))?;
                begin = clock::now();
                sampler.advance(begin, 0);
            }
        }
        Ok(lost)
    }

    /// Runs the loop until `end`. The time that latlab itself takes is left out: to record a gap, to begin
    /// counting, and to copy the results.
    fn spin(&self, sampler: &mut Sampler<'_>, end: Nanos, lost: &mut LostTime) {
        let mut before = clock::now();
        while before < end && sampler.running() {
            if sampler.has_worked() {
                before = clock::now();
            }
            let mut now = clock::now();
            let gap = now - before;
            let is_noise = gap > self.threshold;
            if sampler.is_counting() {
                lost.add(gap, is_noise);
            }
            if is_noise {
                sampler.record(0, now, gap);
                now = clock::now();
            }
            sampler.advance(now, 0);
            before = now;
        }
    }

    /// Returns a warning if the kernel throttles real-time tasks that run for as long as the loop.
    fn throttling_warning(&self, machine: &Machine) -> Option<Warning> {
        let is_real_time = self.scheduling.policy != "other";
        let throttles = machine.throttles().into_iter().filter(|_| is_real_time);
        { throttles }.find_map(|throttle| {
            let (most, window) = throttle.runtime_and_period_us(machine);
            let (most, window) = (Nanos::from_micros(most), Nanos::from_micros(window));
            let wanted = most_in(window, self.busy, self.period);
            let ((knob, value), name) = (throttle.switched_off_by(), throttle.name());
            (wanted > most).then(|| {
                let text = format!(
                    "noise runs for up to {wanted} of {window}, and {name} leaves {most} of it to \
                     real-time tasks: the figures include that loss; use a shorter busy=, or --set \
                     {knob}={value}"
                );
                Warning::new(WarningCode::Throttled, text)
            })
        })
    }
}

/// Returns the CPUs to measure on. If these are all online CPUs, the first one is left to other
/// tasks, with a warning. A single CPU is shared: the loop sleeps in each period.
fn without_housekeeping(rig: &mut Rig<'_>, online: &CpuList) -> CpuList {
    let cpus = rig.cpus().clone();
    if cpus.len() < 2 || !online.minus(&cpus).is_empty() {
        return cpus;
    }
    let first = cpus.iter().take(1).collect();
    let text = format!(
        "noise left CPU {first} out: its loops take nearly all of a CPU, so one is left to other \
         tasks; to choose which, name the others with --cpus"
    );
    rig.warnings.push(Warning::new(WarningCode::Housekeeping, text));
    cpus.minus(&first)
}

/// Returns the longest time that a loop runs within any interval of length `window`.
fn most_in(window: Nanos, busy: Nanos, period: Nanos) -> Nanos {
    let (whole, rest) = (window.0 / period.0, window.0 % period.0);
    Nanos(whole * busy.0 + rest.min(busy.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn noise_that_a_throttle_cuts_short_is_warned_of_with_the_knob_of_the_kernel() {
        let warning = |kernel: &str, busy: u64, policy: &str| {
            let second = Nanos::from_secs(1);
            let noise: Noise = serde_json::from_value(json!({"threshold": Nanos::from_micros(1),
                "busy": Nanos::from_millis(busy), "period": second, "policy": policy,
                "priority": 50}))
            .unwrap();
            let mut machine = Machine { rt_runtime_us: Some(950_000), ..Machine::default() };
            kernel.clone_into(&mut machine.kernel);
            machine.config.insert("CONFIG_PREEMPT_RT".to_owned(), "y".to_owned());
            noise.throttling_warning(&machine).map(|warning| warning.text)
        };
        assert!(warning("6.1.0", 960, "fifo").unwrap().ends_with("--set rt_runtime_us=-1"));
        assert!(warning("6.12.0", 960, "fifo").unwrap().ends_with("--set fair_server=0"));
        assert_eq!(warning("6.12.0", 950, "fifo"), None);
        assert_eq!(warning("6.12.0", 960, "other"), None);
    }

    #[test]
    fn most_in_counts_partial_period_of_window() {
        let most = |busy, period| {
            let [busy, period] = [busy, period].map(Nanos::from_millis);
            most_in(Nanos::from_millis(1_000), busy, period)
        };
        assert_eq!(most(900, 1_000), Nanos::from_millis(900));
        assert_eq!(most(9_000, 10_000), Nanos::from_millis(1_000));
        assert_eq!(most(480, 500), Nanos::from_millis(960));
        assert_eq!(most(500, 600), Nanos::from_millis(900));
    }
}
