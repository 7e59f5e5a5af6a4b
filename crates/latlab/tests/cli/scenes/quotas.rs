//! Loops in a control group whose CPU quota another task of the group uses up.

use super::stage::{
    Cast, KERNELS, MS, SHORT, Stage, VICTIM, expect, explained, is_behind, is_by, judge_charges,
    time_of,
};
use super::{Draw, run_all};
use latlab_core::explain::quota::Quota;
use latlab_core::record::{Record, Sample};
use latlab_core::time::Nanos;

/// Number of periods of the quota.
const PERIODS: u64 = 6;

/// A group gets its time in slices of 5 ms (`sched_cfs_bandwidth_slice_us`), and uses more until a tick of
/// 4 ms. What it uses too much of one period is missing in the next.
const GRAIN: u64 = 9 * MS;

/// The longest turn of a SCHED_OTHER task before another gets the CPU: its slice of 3 ms, to the next tick.
const TURN: u64 = 8 * MS;

struct Scene {
    kernel: &'static str,
    /// Whether the quota is that of a group above the one of the tasks.
    nested: bool,
    quota: u64,
    period: u64,
    every: u64,
    /// Whether a task without quota computes beside the group.
    outsider: bool,
    /// A task of higher priority: for how long, and how often.
    above: Option<(u64, u64)>,
}

impl Scene {
    fn draw(draw: &mut Draw) -> Scene {
        let period = draw.between(40, 200) * MS;
        let outsider = draw.is(3);
        // An outsider has half of the CPU while the group runs.
        let most = if outsider { 30 } else { 70 };
        Scene {
            kernel: draw.one(&KERNELS),
            nested: draw.is(2),
            quota: period * draw.between(10, most) / 100 / MS * MS,
            period,
            every: draw.between(1_000_000, 5_000_000),
            outsider,
            above: draw.is(3).then(|| (draw.between(50_000, 500_000), draw.between(5, 20) * MS)),
        }
    }

    fn cast(&self) -> Cast {
        let group = if self.nested { "app/inner" } else { "app" };
        let (quota, period) = (self.quota / 1_000, self.period / 1_000);
        let inner = "echo +cpu > app/cgroup.subtree_control; mkdir app/inner;";
        let before = format!(
            "echo +cpu > cgroup.subtree_control; mkdir app; {} echo {quota} {period} > app/cpu.max;",
            if self.nested { inner } else { "" }
        );
        let victim = format!("{VICTIM},group={group},every={},busy=50000", self.every);
        let burner = format!("burner,group={group}");
        let outsider = self.outsider.then(|| "outsider".to_owned());
        let above =
            self.above.map(|(busy, every)| format!("above,fifo=40,every={every},busy={busy}"));
        Cast {
            guest: self.kernel.to_owned(),
            before,
            tasks: [victim, burner].into_iter().chain(outsider).chain(above).collect(),
            length: PERIODS * self.period,
            first: false,
            words: format!("--above {}ns", self.wait() / 2),
        }
    }

    /// For how long the group has no time in each period. While it has, an outsider has half of the CPU, and a
    /// task above them its part.
    fn wait(&self) -> u64 {
        let used = self.quota * if self.outsider { 2 } else { 1 };
        let (busy, every) = self.above.unwrap_or((0, 1));
        self.period.saturating_sub(used * every / (every - busy))
    }

    fn judge(&self, record: &Record) -> Result<(), String> {
        let late = explained(record)?.late;
        // Beside an outsider the group may keep time, and then has more in one period and less in another.
        let least = if self.outsider { PERIODS / 2 } else { PERIODS - 1 };
        expect("number of late wake-ups", late, least..=PERIODS + 1)?;
        let quota = Quota {
            group: "/sys/fs/cgroup/app".to_owned(),
            runtime: Nanos(self.quota),
            period: Nanos(self.period),
        };
        let (quota, above) = (quota.to_string(), self.above.is_some());
        judge_charges(record, |charge| {
            is_by(charge, "throttled", &quota)
                // An idle CPU is so for a moment after the quota: none was allowed at first, 2.5 to 3 us came.
                || is_by(charge, "throttled", "the idle task") && charge.ns.0 <= SHORT
                || is_by(charge, "equal-priority", "burner") && charge.ns.0 <= TURN
                || is_by(charge, "equal-priority", "outsider")
                    && self.outsider
                    && charge.ns.0 <= TURN
                || is_by(charge, "higher-priority", "above") && above
                || is_behind(charge, "above") && above
        })?;
        // The first period has begun before the scene; at first it was judged, too.
        let first = record.worst.iter().map(|sample| sample.at).min();
        let others = record.worst.iter().filter(|sample| Some(sample.at) != first);
        { others }.try_for_each(|sample| self.judge_times(sample))
    }

    /// The loop waits for quota from its first time in the wait to the end of the period.
    fn judge_times(&self, sample: &Sample) -> Result<(), String> {
        let (wait, grain) = (self.wait(), if self.outsider { 3 * GRAIN } else { GRAIN });
        let least =
            (wait / 2).saturating_sub(2 * TURN).max(wait.saturating_sub(self.every + 2 * grain));
        expect("wait for quota", time_of(sample, "throttled"), least..=wait + grain)
            .map_err(|why| format!("{why} in {sample:?}"))
    }
}

#[test]
fn cpu_quotas_are_named_with_their_groups() {
    let stage = Stage::new();
    run_all(|draw| {
        let scene = Scene::draw(draw);
        stage.judge(&scene.cast(), |record| scene.judge(record))
    });
}
