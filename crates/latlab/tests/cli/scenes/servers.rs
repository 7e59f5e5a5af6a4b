//! Real-time loops beside a real-time task that never sleeps, from which the kernel takes the CPU for
//! SCHED_OTHER tasks: the fair server since Linux 6.12, the limit of all real-time tasks before.

use super::stage::{Cast, KERNELS, MS, Stage, VICTIM, expect, explained, judge_charges, time_of};
use super::{Draw, run_all};
use latlab_core::record::{Record, Sample};

/// Number of periods of the throttle.
const PERIODS: u64 = 5;

/// The throttles act at ticks, of 4 ms.
const TICK: u64 = 4 * MS;

/// It begins when the others run: on PREEMPT_RT a thread of FIFO priority 1 wakes them.
const HOG: &str = "hog,fifo=30,first=20000000";

struct Scene {
    kernel: &'static str,
    /// For how long the real-time tasks wait, and how often.
    wait: u64,
    period: u64,
    priority: u64,
    every: u64,
    work: u64,
    /// Number of SCHED_OTHER tasks that compute.
    others: u64,
}

impl Scene {
    fn draw(draw: &mut Draw) -> Scene {
        let period = draw.between(400, 800) * MS;
        Scene {
            kernel: draw.one(&KERNELS),
            // latlab at the highest priority takes up to 35 ms to read what was recorded: at first the wait was
            // from 5 % on, and late began at half of it.
            wait: period * draw.between(20, 40) / 100 / MS * MS,
            period,
            priority: draw.between(31, 80),
            every: draw.between(1_000_000, 5_000_000),
            work: draw.between(50_000, 500_000),
            others: draw.between(1, 3),
        }
    }

    /// The settings of the throttle that this kernel has.
    fn before(&self) -> String {
        if self.kernel.starts_with("v6.1-") || self.kernel == "v6.1" {
            let (period, runtime) = (self.period / 1_000, (self.period - self.wait) / 1_000);
            let of = "/proc/sys/kernel/sched_rt";
            format!("echo {runtime} > {of}_runtime_us; echo {period} > {of}_period_us;")
        } else {
            let of = "/sys/kernel/debug/sched/fair_server/cpu0";
            format!("echo {} > {of}/runtime; echo {} > {of}/period;", self.wait, self.period)
        }
    }

    fn cast(&self) -> Cast {
        let Scene { priority, every, work, .. } = self;
        let victim = format!("{VICTIM},fifo={priority},every={every},busy={work}");
        let others = (0..self.others).map(|_| "other".to_owned());
        Cast {
            guest: self.kernel.to_owned(),
            before: self.before(),
            tasks: [victim, HOG.to_owned()].into_iter().chain(others).collect(),
            length: PERIODS * self.period,
            first: true,
            words: format!("--above {}ns", self.wait / 3 * 2),
        }
    }

    fn judge(&self, record: &Record) -> Result<(), String> {
        let late = explained(record)?.late;
        // A period begins before the scene, and the last one may end after it.
        expect("number of late wake-ups", late, PERIODS - 2..=PERIODS + 1)?;
        judge_charges(record, |charge| charge.cause == "throttled")?;
        record.worst.iter().try_for_each(|sample| self.judge_times(sample))?;
        let mut ends: Vec<u64> = record.worst.iter().map(|sample| sample.at.0).collect();
        ends.sort_unstable();
        let between = ends.windows(2).map(|pair| pair[1] - pair[0]);
        let about = self.period - 2 * TICK..=self.period + 2 * TICK;
        between.into_iter().try_for_each(|time| expect("time between", time, about.clone()))
    }

    fn judge_times(&self, sample: &Sample) -> Result<(), String> {
        let least = self.wait.saturating_sub(self.every + self.work + 2 * TICK).max(self.wait / 3);
        expect("throttled", time_of(sample, "throttled"), least..=self.wait + 2 * TICK)
            .map_err(|why| format!("{why} in {sample:?}"))
    }
}

#[test]
fn throttles_of_real_time_tasks_are_named() {
    let stage = Stage::new();
    run_all(|draw| {
        let scene = Scene::draw(draw);
        stage.judge(&scene.cast(), |record| scene.judge(record))
    });
}
