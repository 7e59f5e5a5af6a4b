//! Loops that another task stops: by a signal, as a tracer, or with their control group.

use super::stage::{
    Cast, KERNELS, SHORT, Stage, VICTIM, expect, explained, is_behind, is_by, judge_charges,
    time_of,
};
use super::{Draw, run_all};
use latlab_core::record::{Record, Sample};

/// How a task is stopped: as `tasks.c` calls it, and as `explain` does.
const WAYS: [(&str, &str); 3] = [
    ("stop", "stopped by a signal of stopper"),
    ("trace", "stopped by a tracer, stopper"),
    ("freeze", "frozen with its control group by stopper"),
];

/// Number of stops.
const STOPS: u64 = 5;

/// Longest way into a stop and out of it. A wake-up of a task without real-time policy may come 50 us
/// later, by its timer slack.
const WAY: u64 = 150_000;

/// A task of higher priority beside the loop.
struct Beside {
    busy: u64,
    every: u64,
}

struct Scene {
    kernel: &'static str,
    way: (&'static str, &'static str),
    policy: &'static str,
    period: u64,
    work: u64,
    /// When in a period of the loop the stop begins.
    phase: u64,
    length: u64,
    every: u64,
    beside: Option<Beside>,
}

impl Scene {
    fn draw(draw: &mut Draw) -> Scene {
        let period = draw.between(1_000_000, 40_000_000);
        let work = period / draw.between(4, 20);
        let beside = draw.is(3).then(|| Beside {
            busy: draw.between(20_000, 300_000),
            every: draw.between(2_000_000, 20_000_000),
        });
        // The stop comes well within the work or well after it. A task beside the loop delays the work.
        let phase = if beside.is_none() && draw.is(2) {
            draw.between(work / 4, work / 2)
        } else {
            let busy = beside.as_ref().map_or(0, |beside| beside.busy);
            draw.between((work + 3 * busy + period) / 2, period - period / 20)
        };
        let length = draw.between(3 * period, 3 * period + 120_000_000);
        Scene {
            kernel: draw.one(&KERNELS),
            way: draw.one(&WAYS),
            policy: draw.one(&["fifo=30", "nice=0", "nice=5"]),
            period,
            work,
            phase,
            length,
            every: (length * 2 / period + 2) * period,
            beside,
        }
    }

    fn cast(&self) -> Cast {
        let Scene { policy, period, work, phase, length, every, .. } = self;
        let victim = format!("{VICTIM},group=stopped,{policy},every={period},busy={work}");
        let stopper = format!(
            "stopper,fifo=90,does={},of={VICTIM},first={phase},every={every},lasts={length}",
            self.way.0
        );
        let beside = self.beside.iter().map(|Beside { busy, every }| {
            format!("beside,fifo=60,first=500000,every={every},busy={busy}")
        });
        Cast {
            guest: self.kernel.to_owned(),
            before: "mkdir stopped;".to_owned(),
            tasks: [victim, stopper].into_iter().chain(beside).collect(),
            length: STOPS * every,
            first: false,
            words: format!("--above {}ns", length / 4),
        }
    }

    /// The loop is late from its next time on, or from the stop on where that came within its work.
    fn latency(&self) -> u64 {
        let asleep = self.phase > self.work;
        self.length - if asleep { self.period - self.phase } else { 0 }
    }

    fn judge(&self, record: &Record) -> Result<(), String> {
        let late = explained(record)?.late;
        expect("number of late wake-ups", late, STOPS..=STOPS)?;
        let is_beside = self.beside.is_some();
        judge_charges(record, |charge| {
            is_by(charge, "stopped", self.way.1)
                // It goes on for a moment after it has let the loop go on.
                || is_by(charge, "higher-priority", "stopper") && charge.ns.0 <= SHORT
                || is_by(charge, "higher-priority", "beside") && is_beside
                || is_behind(charge, "beside") && is_beside
        })?;
        record.worst.iter().try_for_each(|sample| self.judge_times(sample))
    }

    fn judge_times(&self, sample: &Sample) -> Result<(), String> {
        let beside = self.beside.as_ref().map_or(0, |beside| beside.busy + WAY);
        let latency = self.latency();
        let stopped = time_of(sample, "stopped");
        expect("latency", sample.latency.0, latency - WAY..=latency + WAY + beside)
            .and_then(|()| expect("time of the stop", stopped, latency - WAY..=latency + WAY))
            .map_err(|why| format!("{why} in {sample:?}"))
    }
}

#[test]
fn stops_of_random_loops_are_named() {
    let stage = Stage::new();
    run_all(|draw| {
        let scene = Scene::draw(draw);
        stage.judge(&scene.cast(), |record| scene.judge(record))
    });
}
