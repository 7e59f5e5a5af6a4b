//! SCHED_OTHER loops beside other tasks: whoever had the CPU is named, and nobody else.

use super::stage::{
    Cast, KERNELS, MS, Stage, VICTIM, expect, explained, is_behind, is_by, judge_charges,
};
use super::{Draw, run_all};
use latlab_core::record::{Charge, Record, Sample};

/// How long a scene is observed.
const LENGTH: u64 = 600 * MS;

/// A task beside the loop, by name.
struct Beside {
    name: &'static str,
    /// Its priority, or none of a SCHED_OTHER task with this nice value.
    fifo: Option<u64>,
    nice: u64,
    busy: u64,
    /// 0 if it never sleeps.
    every: u64,
}

struct Scene {
    kernel: &'static str,
    nice: u64,
    every: u64,
    work: u64,
    beside: Vec<Beside>,
}

impl Beside {
    fn draw(draw: &mut Draw, name: &'static str) -> Beside {
        let is_fifo = draw.is(2);
        let never_sleeps = !is_fifo && draw.is(2);
        Beside {
            name,
            fifo: is_fifo.then(|| draw.between(1, 80)),
            nice: if draw.is(2) { 0 } else { draw.between(1, 10) },
            busy: draw.between(500_000, 6_000_000),
            every: if never_sleeps { 0 } else { draw.between(20, 60) * MS },
        }
    }

    fn words(&self) -> String {
        let Beside { name, nice, busy, every, .. } = self;
        let policy = self.fifo.map_or(format!("nice={nice}"), |fifo| format!("fifo={fifo}"));
        format!("{name},{policy},every={every},busy={busy}")
    }

    /// Whether it is the culprit of a charge.
    fn has(&self, charge: &Charge) -> bool {
        let cause = if self.fifo.is_some() { "higher-priority" } else { "equal-priority" };
        is_by(charge, cause, self.name) || self.fifo.is_some() && is_behind(charge, self.name)
    }

    /// The longest time that it has the CPU in a wait.
    fn most(&self, wait: u64) -> u64 {
        wait.checked_div(self.every).map_or(wait, |times| (times + 2) * self.busy + MS / 10)
    }
}

impl Scene {
    fn draw(draw: &mut Draw) -> Scene {
        let number = draw.one(&[1, 2, 3]);
        let every = draw.between(2_000_000, 20_000_000);
        Scene {
            kernel: draw.one(&KERNELS),
            nice: if draw.is(2) { 0 } else { draw.between(1, 10) },
            every,
            work: every / draw.between(4, 20),
            beside: ["one", "two", "three"][..number]
                .iter()
                .map(|name| Beside::draw(draw, name))
                .collect(),
        }
    }

    fn cast(&self) -> Cast {
        let Scene { nice, every, work, .. } = self;
        let victim = format!("{VICTIM},nice={nice},every={every},busy={work}");
        Cast {
            guest: self.kernel.to_owned(),
            before: String::new(),
            tasks: [victim].into_iter().chain(self.beside.iter().map(Beside::words)).collect(),
            length: LENGTH,
            first: false,
            words: "--above 300us".to_owned(),
        }
    }

    fn judge(&self, record: &Record) -> Result<(), String> {
        let late = explained(record)?.late;
        expect("number of late wake-ups", late, 0..=LENGTH / self.every + 2)?;
        judge_charges(record, |charge| self.beside.iter().any(|beside| beside.has(charge)))?;
        record.worst.iter().try_for_each(|sample| self.judge_times(sample))
    }

    fn judge_times(&self, sample: &Sample) -> Result<(), String> {
        let time_of = |beside: &Beside| {
            sample.causes.iter().filter(|c| beside.has(c)).map(|c| c.ns.0).sum::<u64>()
        };
        self.beside.iter().try_for_each(|beside| {
            expect(beside.name, time_of(beside), 0..=beside.most(sample.latency.0))
                .map_err(|why| format!("{why} in {sample:?}"))
        })
    }
}

#[test]
fn tasks_beside_random_ordinary_loops_are_named() {
    let stage = Stage::new();
    run_all(|draw| {
        let scene = Scene::draw(draw);
        stage.judge(&scene.cast(), |record| scene.judge(record))
    });
}
