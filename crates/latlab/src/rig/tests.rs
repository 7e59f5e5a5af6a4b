//! A probe that can't go on ends, and says why.

use super::*;
use latlab_core::plan::Length;
use latlab_sys::clock;
use latlab_sys::sched::Policy;

/// Nobody looks on.
struct Blind;

impl Watch for Blind {
    fn begin(&mut self, _: &str, _: &[(String, Arc<Tally>)]) {}
    fn update(&mut self, _: Nanos, _: Nanos) {}
    fn end(&mut self) {}
    fn note(&mut self, _: &str) {}
    fn pace(&self) -> Nanos {
        Nanos::from_millis(50)
    }
}

const LIMIT: Nanos = Nanos::from_millis(200);

/// Runs `body` on CPU 0 for 100 samples. How it ended, and how many samples came.
fn ends(
    body: impl Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
) -> (std::result::Result<(), String>, u64) {
    ends_on(1, body)
}

/// The same on so many lanes.
fn ends_on(
    lanes: usize,
    body: impl Fn(&mut Lane<'_>) -> io::Result<()> + Sync,
) -> (std::result::Result<(), String>, u64) {
    let plan = Plan::bare("", CpuList::from_iter([0]), Length::Count(100));
    let places = vec![plan.cpus.clone(); lanes];
    let signals = Signals::hold().unwrap();
    let mut watch = Blind;
    let mut rig = Rig::new(&plan, &signals, &mut watch);
    let (spans, rhythm) = ([("a", "b")], Rhythm::Within(LIMIT));
    let scheduling =
        Scheduling { policy: "other".to_owned(), priority: 1, slack: None, runtime: None };
    let ended = rig.on_each_of(&places, "test", &spans, rhythm, &scheduling, body);
    let recorded = rig.measured.iter().map(|one| one.lane.series[0].0.recorded()).sum();
    (ended.map_err(|failure| failure.to_string()), recorded)
}

fn sample(lane: &mut Lane<'_>) {
    let now = clock::now();
    lane.sample(0, now, Nanos(1));
    lane.rest(now);
}

/// Waits, as in a call that a signal interrupts, until told to stop.
fn wait_while(running: impl Fn() -> bool) -> io::Result<()> {
    while running() {
        clock::sleep_for(Nanos::from_secs(60));
    }
    Err(io::ErrorKind::Interrupted.into())
}

#[test]
fn repetitions_are_counted_and_partners_are_interrupted() {
    let (ended, recorded) = ends(|lane| {
        let partner = |partner: &Partner<'_>| wait_while(|| partner.running());
        lane.beside(Policy::Other, partner, |lane| {
            while lane.running() {
                sample(lane);
            }
            Ok(())
        })
    });
    assert_eq!((ended, recorded), (Ok(()), 100));
}

#[test]
fn a_wake_up_that_never_comes_ends_the_probe() {
    let (ended, recorded) = ends(|lane| {
        assert!(lane.running());
        sample(lane);
        while lane.running() {
            clock::sleep_for(Nanos::from_secs(60));
        }
        Ok(())
    });
    let said = ended.unwrap_err();
    assert!(said.contains("test on CPU 0") && said.contains("nothing came for 200 ms"), "{said}");
    assert_eq!(recorded, 1);
}

#[test]
fn a_lane_that_is_done_is_not_taken_for_stuck() {
    let (ended, recorded) = ends_on(2, |lane| {
        while lane.running() {
            sample(lane);
            if lane.place() == 1 {
                clock::sleep_for(Nanos(LIMIT.0 / 30));
            }
        }
        Ok(())
    });
    assert_eq!((ended, recorded), (Ok(()), 200));
}

#[test]
fn a_partner_that_leaves_ends_the_probe() {
    let measure = |lane: &mut Lane<'_>| {
        while lane.running() {
            clock::sleep_for(Nanos::from_secs(60));
        }
        Ok(())
    };
    let (ended, _) = ends(|lane| lane.beside(Policy::Other, |_| Ok(()), measure));
    assert_eq!(ended, Err("a task that takes part ended before it was told to".to_owned()));
    let refuse = |_: &Partner<'_>| Err(io::Error::other("no more"));
    let (ended, _) = ends(|lane| lane.beside(Policy::Other, refuse, measure));
    assert_eq!(ended, Err("a task that takes part: no more".to_owned()));
}
