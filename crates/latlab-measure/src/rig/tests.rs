//! Ends of probes: complete, stalled, and with a second task that fails.

use super::*;
use latlab_core::plan::Length;
use latlab_sys::sched::Policy;
use latlab_sys::{clock, cpu};
use std::sync::Mutex;

/// Shows nothing.
struct NoDisplay;

impl Watch for NoDisplay {
    fn begin(&mut self, _: &str, _: &[(String, Arc<AtomicHistogram>)]) {}
    fn update(&mut self, _: Nanos, _: Nanos) {}
    fn end(&mut self) {}
    fn note(&mut self, _: &str) {}
    fn pace(&self) -> Nanos {
        Nanos::from_millis(50)
    }
}

/// Without a sample for this time, a probe fails in the tests of that.
const TIMEOUT: Nanos = Nanos::from_secs(1);

/// The outcome of a probe, and its number of samples.
type Outcome = (std::result::Result<(), String>, u64);

/// Runs `body` on CPU 0 for 100 samples.
fn run(body: impl Fn(&mut Sampler<'_>) -> io::Result<()> + Sync) -> Outcome {
    /// No machine is so busy that a sampler takes no sample for so long.
    const NEVER: Nanos = Nanos::from_secs(600);
    run_samplers(1, NEVER, body)
}

/// As [`run`], with this number of samplers. The probe fails without a sample for `timeout`.
fn run_samplers(
    samplers: usize,
    timeout: Nanos,
    body: impl Fn(&mut Sampler<'_>) -> io::Result<()> + Sync,
) -> Outcome {
    let plan = Plan::bare("", CpuList::from_iter([0]), Length::Count(100));
    let cpu_sets = vec![plan.cpus.clone(); samplers];
    let signals = Signals::block().unwrap();
    let mut watch = NoDisplay;
    let mut rig = Rig::new(&plan, cpu::allowed().unwrap(), &signals, &mut watch);
    let (spans, pacing) = ([("a", "b")], Pacing::BackToBack(timeout));
    let ended = rig.on_cpu_sets(&cpu_sets, "test", &spans, pacing, &ordinary(), body);
    let recorded = rig.measured.iter().map(|one| one.recording.series[0].0.recorded()).sum();
    (ended.map_err(|failure| failure.to_string()), recorded)
}

fn ordinary() -> Scheduling {
    Scheduling { policy: "other".to_owned(), priority: 1, slack: None, runtime: None }
}

/// When each sampler of a probe ran.
struct Turns([Mutex<Vec<Nanos>>; 2]);

impl Turns {
    fn note(&self, sampler: &Sampler<'_>) {
        self.0[sampler.index()].lock().unwrap().push(clock::now());
    }

    /// The longest time between two turns of a sampler.
    fn longest_wait(&self) -> Nanos {
        let waits = |turns: &Mutex<Vec<Nanos>>| {
            let turns = turns.lock().unwrap();
            turns.windows(2).map(|two| two[1] - two[0]).max()
        };
        self.0.iter().filter_map(waits).max().unwrap_or(Nanos(0))
    }
}

/// The outcome of a probe whose samplers note their turns, at its first run in which none waited
/// long for its CPU: on a busy machine a sampler may take no sample for [`TIMEOUT`] because of that.
fn undisturbed(run: impl Fn(&Turns) -> Outcome) -> Outcome {
    loop {
        let begun = clock::now();
        let turns = Turns([(); 2].map(|()| Mutex::new(vec![begun])));
        let outcome = run(&turns);
        // Two waits may follow each other without a sample in between.
        if turns.longest_wait() < Nanos(TIMEOUT.0 / 2) {
            return outcome;
        }
    }
}

fn record(sampler: &mut Sampler<'_>) {
    let now = clock::now();
    sampler.record(0, now, Nanos(1));
    sampler.advance_and_pause(now);
}

/// Sleeps, as in a call that a signal interrupts, until told to stop.
fn wait_while(running: impl Fn() -> bool) -> io::Result<()> {
    while running() {
        clock::sleep_for(Nanos::from_secs(60));
    }
    Err(io::ErrorKind::Interrupted.into())
}

#[test]
fn count_of_repetitions_ends_probe_and_interrupts_second_task() {
    let (ended, recorded) = run(|sampler| {
        let task = |task: &SecondTask<'_>| wait_while(|| task.running());
        sampler.with_second_task(Policy::Other, task, |sampler| {
            while sampler.running() {
                record(sampler);
            }
            Ok(())
        })
    });
    assert_eq!((ended, recorded), (Ok(()), 100));
}

/// No machine has 8000 CPUs that are online, so those of such numbers have gone offline.
#[test]
fn cpu_that_is_offline_when_a_probe_starts_is_lost_and_the_others_are_measured() {
    let signals = Signals::block().unwrap();
    let mut watch = NoDisplay;
    let mut measure = |cpus: &[u32]| {
        let cpus = cpus.iter().copied().collect();
        let plan = Plan::bare("", cpus, Length::Count(100));
        let mut rig = Rig::new(&plan, cpu::allowed().unwrap(), &signals, &mut watch);
        let (spans, pacing) = ([("a", "b")], Pacing::BackToBack(Nanos::from_secs(600)));
        let ended = rig.on_each_cpu("test", &spans, pacing, &ordinary(), |sampler| {
            while sampler.running() {
                record(sampler);
            }
            Ok(())
        });
        let measured = rig.measured.iter().map(|one| one.cpus.to_string()).collect::<Vec<_>>();
        (ended.map_err(|failure| failure.to_string()), measured, rig.lost.to_string())
    };
    let on = |measured: &str| vec![measured.to_owned()];
    assert_eq!(measure(&[0]), (Ok(()), on("0"), String::new()));
    assert_eq!(measure(&[0, 8000]), (Ok(()), on("0"), "8000".to_owned()));
    assert_eq!(measure(&[0, 8000, 8001]), (Ok(()), on("0"), "8000-8001".to_owned()));
    let gone = Err("test: CPU 8000 went offline before it was measured".to_owned());
    assert_eq!(measure(&[8000]), (gone, vec![], "8000".to_owned()));
}

#[test]
fn lost_wakeup_fails_probe() {
    let (ended, recorded) = undisturbed(|turns| {
        run_samplers(1, TIMEOUT, |sampler| {
            turns.note(sampler);
            assert!(sampler.running());
            record(sampler);
            turns.note(sampler);
            while sampler.running() {
                clock::sleep_for(Nanos::from_secs(60));
            }
            Ok(())
        })
    });
    let said = ended.unwrap_err();
    assert!(said.contains("test on CPU 0") && said.contains("no sample for 1 s"), "{said}");
    assert_eq!(recorded, 1);
}

#[test]
fn finished_sampler_is_not_taken_for_stalled() {
    let outcome = undisturbed(|turns| {
        run_samplers(2, TIMEOUT, |sampler| {
            while sampler.running() {
                record(sampler);
                turns.note(sampler);
                if sampler.index() == 1 {
                    clock::sleep_for(Nanos(TIMEOUT.0 / 80));
                }
            }
            turns.note(sampler);
            Ok(())
        })
    });
    assert_eq!(outcome, (Ok(()), 200));
}

/// As on a board that learns the time of day while it measures.
#[test]
fn clock_set_ahead_does_not_end_measurement() {
    let years = Nanos::from_secs(1_600_000_000);
    let coordination = Coordination::new(1);
    let runs_on = |interval: Nanos, length: Nanos, warm_up: Nanos, settable: bool| {
        let length = Length::For(length);
        let conditions = Conditions { length, warm_up, limit: Nanos::MAX, brief: false };
        let mut sampler = Sampler::new(0, 1, Some(interval), conditions, &coordination);
        sampler.start_at(clock::now());
        if settable {
            sampler.set_settable_clock();
        }
        let due = sampler.first_due(Phase::Aligned);
        assert!(sampler.running());
        sampler.record_wakeup(due, due + years);
        sampler.running()
    };
    let (period, hour) = (Nanos::from_millis(1), Nanos::from_secs(3_600));
    assert!(runs_on(period, hour, Nanos(0), true) && runs_on(period, hour, hour, true));
    assert!(!runs_on(period, hour, Nanos(0), false), "periods that were missed have passed");
    // Of a period, or less, the two clocks may differ.
    assert!(!runs_on(hour, Nanos(1), Nanos(0), true), "its time has passed on both clocks");
}

#[test]
fn second_task_that_ends_early_fails_probe() {
    let measure = |sampler: &mut Sampler<'_>| {
        while sampler.running() {
            clock::sleep_for(Nanos::from_secs(60));
        }
        Ok(())
    };
    let (ended, _) = run(|sampler| sampler.with_second_task(Policy::Other, |_| Ok(()), measure));
    let early = "a second task of the probe ended before it was told to stop";
    assert_eq!(ended, Err(early.to_owned()));
    let refuse = |_: &SecondTask<'_>| Err(io::Error::other("no more"));
    let (ended, _) = run(|sampler| sampler.with_second_task(Policy::Other, refuse, measure));
    assert_eq!(ended, Err("a second task of the probe: no more".to_owned()));
}

#[test]
fn failure_beside_second_and_runnable_tasks_fails_probe() {
    let refuse = |_: &mut Sampler<'_>| Err(io::Error::other("no more"));
    let (ended, _) = run(|sampler| {
        let task = |task: &SecondTask<'_>| wait_while(|| task.running());
        sampler.with_second_task(Policy::Other, task, refuse)
    });
    let why = "measuring beside other tasks of the probe: no more";
    assert_eq!(ended, Err(why.to_owned()));
    let (ended, _) = run(|sampler| sampler.with_runnable_tasks(3, refuse));
    assert_eq!(ended, Err(why.to_owned()));
}

/// A task of higher priority may have their CPU when the probe ends: they are interrupted and
/// demoted as its other threads are.
#[test]
fn runnable_tasks_are_known_until_they_have_ended() {
    let stopped = |sampler: &Sampler<'_>| sampler.coordination.stopped_threads().len();
    let seen = Mutex::new(Vec::new());
    // The probe takes no sample; whether it fails does not matter here.
    let _ = run(|sampler| {
        sampler.with_runnable_tasks(3, |sampler| {
            sampler.coordination.stop(sampler.index());
            seen.lock().unwrap().push(stopped(sampler));
            Ok(())
        })?;
        seen.lock().unwrap().push(stopped(sampler));
        Ok(())
    });
    assert_eq!(seen.into_inner().unwrap(), [4, 1], "its own thread and three tasks, then none");
}
