//! Threads that are to run all the time, or most of it, and busy loops, whose CPU known tasks take.

use super::stage::{Cast, KERNELS, MS, Stage, VICTIM, expect, explained};
use super::{Draw, run_all};
use crate::program::latlab;
use latlab_core::record::Record;
use latlab_core::record::running::RunningThread;
use std::ops::RangeInclusive;

/// How long a scene is observed.
const LENGTH: u64 = 600 * MS;

/// What the kernel adds to each run of a task: the switches to it and from it, and its timer.
const SWITCHES: u64 = 30_000;

/// A task that takes the CPU.
struct Taker {
    busy: u64,
    every: u64,
}

impl Taker {
    fn draw(draw: &mut Draw) -> Taker {
        Taker { busy: draw.between(50_000, 2_000_000), every: draw.between(10, 60) * MS }
    }

    /// How often it acts in a time that begins with it.
    fn times(&self, length: u64) -> u64 {
        length.div_ceil(self.every)
    }

    /// Says where this task did not take as much from a thread as it ran, so often.
    fn judge(
        &self,
        name: &str,
        times: RangeInclusive<u64>,
        thread: &RunningThread,
    ) -> Result<(), String> {
        let cause = "higher-priority";
        let ours = thread.taken.iter().find(|one| one.cause == cause && one.culprit == name);
        let total = ours.map_or(0, |taken| taken.total.0);
        let busy = self.busy;
        let range =
            times.start() * (busy - busy / 50)..=times.end() * (busy + busy / 50 + SWITCHES);
        expect(&format!("time of {name}"), total, range)
            .map_err(|why| format!("{why} in {thread:?}"))
    }
}

/// A thread that computes, all the time or a part of it, beside tasks of higher priority.
struct Scene {
    kernel: &'static str,
    policy: &'static str,
    /// Its time in each 20 ms; none of a thread that never sleeps.
    work: Option<u64>,
    takers: Vec<Taker>,
}

const NAMES: [&str; 3] = ["one", "two", "three"];

impl Scene {
    fn draw(draw: &mut Draw) -> Scene {
        let work = draw.is(3).then(|| draw.between(4, 9) * MS);
        // Beside several it could not do its work in time.
        let takers = if work.is_some() { 1 } else { draw.one(&[1, 2, 3]) };
        Scene {
            kernel: draw.one(&KERNELS),
            policy: draw.one(&["fifo=10", "nice=0"]),
            work,
            takers: (0..takers).map(|_| Taker::draw(draw)).collect(),
        }
    }

    fn cast(&self) -> Cast {
        let work = self.work.map(|work| format!(",every={},busy={work},catches=1", 20 * MS));
        let victim = format!("{VICTIM},{}{}", self.policy, work.unwrap_or_default());
        let takers = NAMES.iter().zip(&self.takers).zip(40..).map(|((name, taker), priority)| {
            format!("{name},fifo={priority},every={},busy={},catches=1", taker.every, taker.busy)
        });
        Cast {
            guest: self.kernel.to_owned(),
            before: String::new(),
            tasks: [victim].into_iter().chain(takers).collect(),
            length: LENGTH,
            first: true,
            words: "--running".to_owned(),
        }
    }

    fn judge(&self, record: &Record) -> Result<(), String> {
        let threads = &explained(record)?.running;
        let [thread] = &threads[..] else { return Err(format!("{threads:?}")) };
        match self.work {
            // Until it runs, a thread that sleeps has no CPU to take.
            Some(work) => judge_sleeper(work, thread),
            None => self.judge_takers(thread),
        }?;
        let is_known = |culprit: &str| NAMES.contains(&culprit) || culprit.starts_with("latlab");
        let is_task =
            |cause: &str| ["higher-priority", "equal-priority", "throttled"].contains(&cause);
        let others =
            thread.taken.iter().filter(|one| is_task(&one.cause) && !is_known(&one.culprit));
        // Threads of the kernel, such as those of RCU.
        let others = others.map(|one| one.total.0).sum();
        expect("time of other tasks", others, 0..=LENGTH / 200)
            .map_err(|why| format!("{why} in {thread:?}"))
    }

    fn judge_takers(&self, thread: &RunningThread) -> Result<(), String> {
        let lost: u64 = self.takers.iter().map(|taker| taker.times(LENGTH) * taker.busy).sum();
        expect("time that it ran", thread.ran.0, 0..=LENGTH + LENGTH / 100 - lost)?;
        NAMES.iter().zip(&self.takers).try_for_each(|(name, taker)| {
            let times = taker.times(LENGTH);
            taker.judge(name, times..=times, thread)
        })
    }
}

/// A thread that sleeps works in each of its periods, whatever takes the CPU meanwhile.
fn judge_sleeper(work: u64, thread: &RunningThread) -> Result<(), String> {
    let all = LENGTH.div_ceil(20 * MS) * work;
    expect("time that it ran", thread.ran.0, all - all / 50..=all + all / 50)
        .map_err(|why| format!("{why} in {thread:?}"))
}

#[test]
fn tasks_that_take_the_cpu_from_running_threads_are_named() {
    let stage = Stage::new();
    run_all(|draw| {
        let scene = Scene::draw(draw);
        stage.judge(&scene.cast(), |record| scene.judge(record))
    });
}

#[test]
fn tasks_that_take_the_cpu_from_busy_loops_are_named() {
    run_all(|draw| {
        let (kernel, taker) = (draw.one(&KERNELS), Taker::draw(draw));
        let Taker { busy, every } = taker;
        // While a throttle lets SCHED_OTHER tasks run, the load misses its times.
        let is_old = kernel.trim_end_matches("-rt") == "v6.1";
        let unthrottled = if is_old { "rt_runtime_us=-1" } else { "fair_server=0" };
        let words = format!(
            "explain noise --traced --on lab:{kernel} --for {LENGTH}ns --set {unthrottled} --load \
             cpu:size=16,policy=fifo,priority=97,busy={busy}ns,every={every}ns"
        );
        let output = latlab(&format!("{words} --json"));
        let judged = match output.code() {
            Some(0) => judge_noise(&taker, &output.record()),
            _ => Err(output.stderr),
        };
        judged.map_err(|why| format!("latlab {words}: {why}"))
    });
}

fn judge_noise(taker: &Taker, record: &Record) -> Result<(), String> {
    let explained = explained(record)?;
    expect("unexplained", explained.unexplained.0, 0..=explained.total.0 / 100)?;
    let [thread] = &explained.running[..] else { return Err(format!("{:?}", explained.running)) };
    // At first one less to two more were allowed, and at most one is cut at each end.
    let times = taker.times(thread.span().0);
    taker.judge("load:cpu", times.saturating_sub(2)..=times + 1, thread)
}
