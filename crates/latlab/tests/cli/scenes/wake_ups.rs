//! Wake-ups delayed by a random cause beside random tasks, which an explanation has to name.

use super::{Draw, run_all};
use crate::program::latlab;
use latlab_core::record::{Charge, Record, Sample};

const KERNELS: [&str; 3] = ["utime", "preemptible-hr", "rt"];

/// A cause of `inject`: its name there, the cause that `explain` has to name, a part of the
/// culprit, and the function.
type Truth = (&'static str, &'static str, &'static str, Option<&'static str>);

const TRUTHS: [Truth; 10] = [
    ("interrupts-off", "interrupts-off", "second-task", Some("latlab_interrupts_off")),
    ("preemption-off", "non-preemptible", "second-task", Some("latlab_preemption_off")),
    ("raw-spinlock", "interrupts-off", "second-task", Some("latlab_raw_spinlock")),
    ("timer-callback", "timer-callbacks", "", Some("latlab_timer_callback")),
    ("softirq", "softirq", "TASKLET", None),
    ("interrupt", "interrupt", "(latlab)", None),
    ("higher-priority", "higher-priority", "second-task", None),
    ("equal-priority", "equal-priority", "second-task", None),
    ("page-fault", "page-fault", "inject/0", None),
    ("mutex", "lock", "mutex latlab_mutex [latlab] held by second-task", Some("latlab_hold_mutex")),
];

/// Ordinary loads, with the names of their tasks.
const LOADS: [&str; 5] = ["exit:size=2MiB", "procfs", "fork", "hackbench:groups=1", "exec"];

/// A real-time task beside the delayed one.
struct Beside {
    busy: u64,
    every: u64,
    priority: u64,
}

struct Scene {
    kernel: &'static str,
    truth: Truth,
    /// Length of the delay, in nanoseconds.
    time: u64,
    priority: u64,
    beside: Vec<Beside>,
    load: Option<&'static str>,
}

/// Longest time of an interrupt, a timer callback, and the way from the switch to the program that
/// the scene does not make longer.
const SHORT: u64 = 40_000;

impl Scene {
    fn draw(draw: &mut Draw) -> Scene {
        let kernel = draw.one(&KERNELS);
        // Softirqs are preemptible on PREEMPT_RT, and so delay nothing.
        let truths = TRUTHS.into_iter().filter(|(name, ..)| (kernel, *name) != ("rt", "softirq"));
        let truth = draw.one(&truths.collect::<Vec<_>>());
        let longest = if truth.0 == "interrupt" { 800_000 } else { 3_000_000 };
        let beside = |draw: &mut Draw| Beside {
            busy: draw.between(10_000, 200_000),
            every: draw.between(1_000_000, 8_000_000),
            priority: if draw.is(2) { draw.between(90, 98) } else { draw.between(2, 40) },
        };
        let tasks = draw.one(&[0, 1, 1, 2]);
        Scene {
            kernel,
            truth,
            time: draw.between(20_000, longest),
            priority: draw.between(50, 80),
            beside: (0..tasks).map(|_| beside(draw)).collect(),
            load: draw.is(2).then(|| draw.one(&LOADS)),
        }
    }

    fn words(&self) -> String {
        let Scene { kernel, truth, time, priority, beside, load } = self;
        // The delay and everything else end well before the next.
        let interval = 2 * time + 6_000_000;
        let beside = beside.iter().map(|Beside { busy, every, priority }| {
            format!(
                " --load cpu:size=16,busy={busy}ns,every={every}ns,policy=fifo,priority={priority}"
            )
        });
        let load = load.map(|load| format!(" --load {load}")).unwrap_or_default();
        format!(
            "explain inject:cause={},time={time}ns,interval={interval}ns,priority={priority}{}{load} \
             --count 10 --above {}ns --traced --on lab:{kernel}",
            truth.0,
            beside.collect::<String>(),
            time / 2
        )
    }

    /// Says what is wrong with the explanation of this scene.
    fn judge(&self, record: &Record) -> Result<(), String> {
        for sample in &record.worst {
            let rest = sample.unexplained.ok_or("a sample is not explained")?;
            if rest.0 > 1_000.max(sample.latency.0 / 100) {
                return Err(format!("{rest} unexplained of {sample:?}"));
            }
            let wrong = |charge: &&Charge| !self.is_injected(charge) && !self.is_known(charge);
            if let Some(charge) = sample.causes.iter().find(wrong) {
                return Err(format!("{charge:?} in {sample:?}"));
            }
        }
        let short = record.worst.iter().filter(|sample| !self.is_whole(sample));
        let late = late_delays(record);
        if short.count() > late {
            return Err(format!("delays too short, {late} began late: {:?}", record.worst));
        }
        if record.worst.is_empty() && late < 10 {
            return Err("nothing is late".to_owned());
        }
        Ok(())
    }

    /// Whether the charge is the delay.
    fn is_injected(&self, charge: &Charge) -> bool {
        let (_, cause, culprit, function) = self.truth;
        // Without preemption, the stack of the waking names the function where it can be unwound.
        let function =
            function.filter(|_| (self.kernel, self.truth.0) != ("utime", "preemption-off"));
        let named = |name: &str| charge.stack.iter().any(|one| one.starts_with(name));
        charge.cause == cause && charge.culprit.contains(culprit) && function.is_none_or(named)
    }

    /// Whether the charge is something else that the scene contains.
    fn is_known(&self, charge: &Charge) -> bool {
        let in_driver = charge.stack.iter().any(|name| name.starts_with("latlab_"));
        let is_task = |name: &str| charge.culprit.starts_with(name);
        match charge.cause.as_str() {
            "higher-priority" => {
                let above = self.beside.iter().any(|task| task.priority > self.priority);
                is_task("load:cpu ") && above || is_task("migration/0")
            }
            "interrupt" | "timer-callbacks" | "dispatch" | "idle-exit" => charge.ns.0 <= SHORT,
            "softirq" => self.kernel != "rt",
            // Until 26 November 2026 no lock was known. On PREEMPT_RT, a page fault sleeps while
            // the load, or latlab itself, which keeps the explanations, holds a spinlock of the
            // memory management: seen in 2 of 250 scenes.
            "lock" => {
                let holders = ["spinlock held by load:", "spinlock held by latlab:"];
                let held = holders.iter().any(|holder| charge.culprit.starts_with(holder));
                self.kernel == "rt" && self.truth.0 == "page-fault" && held && charge.ns.0 <= SHORT
            }
            // The waits of a task that sleeps of its own accord are no sections.
            "non-preemptible" | "interrupts-off" => {
                let sleeps = charge.stack.iter().any(|name| name.starts_with("do_nanosleep"));
                charge.ns.0 <= SHORT || !in_driver && !sleeps && !is_task("load:cpu ")
            }
            _ => false,
        }
    }

    /// Whether the delay lasts from its beginning to its end, but for short interrupts and tasks of
    /// higher priority.
    fn is_whole(&self, sample: &Sample) -> bool {
        let until = |charge: &Charge| {
            (charge.from.0 + charge.ns.0).min(self.time).saturating_sub(charge.from.0)
        };
        let others = sample.causes.iter().filter(|charge| !self.is_injected(charge));
        let above: u64 = others.clone().filter(|c| c.cause == "higher-priority").map(until).sum();
        let short: u64 = others.filter(|c| c.cause != "higher-priority").map(until).sum();
        let ends = sample.latency.0 >= self.time;
        ends && short <= SHORT + self.time / 50 && above <= self.time_above()
    }

    /// The longest time that tasks of higher priority take within the delay.
    fn time_above(&self) -> u64 {
        let above = self.beside.iter().filter(|task| task.priority > self.priority);
        above.map(|task| (self.time / task.every + 2) * (task.busy + SHORT)).sum()
    }
}

/// Number of delays that began too late, by the warning of `inject`.
fn late_delays(record: &Record) -> usize {
    let warning = record.warnings.iter().find(|warning| warning.code == "late-delay");
    let number = warning.and_then(|warning| warning.text.split(' ').nth(1)?.parse().ok());
    number.unwrap_or(0)
}

#[test]
fn causes_of_random_wake_ups_are_named() {
    run_all(|draw| {
        let scene = Scene::draw(draw);
        let words = scene.words();
        let output = latlab(&format!("{words} --json"));
        let judged = match output.code() {
            Some(0) => scene.judge(&output.record()),
            _ => Err(output.stderr),
        };
        judged.map_err(|why| format!("latlab {words}: {why}"))
    });
}
