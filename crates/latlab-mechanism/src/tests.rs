//! Tests of mechanisms together: knobs that are set, restored and left alone.

mod latency;
mod threads;

use super::mode::ByTasks;
use super::suppress::Suppress;
use super::*;
use latlab_core::time::Nanos;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn knob(name: &'static str, value: &str) -> Knob {
    let possible = ["none", "voluntary", "full", "lazy"].map(str::to_owned).to_vec();
    Knob { name: name.to_owned(), path: format!("/{name}"), value: value.to_owned(), possible }
}

fn task(id: i32) -> RealTimeTask {
    RealTimeTask { id, process: id, name: "task".to_owned(), priority: 80 }
}

/// A machine with two knobs that carries out decisions.
#[derive(Clone, Debug)]
struct TwoKnobs {
    now: Nanos,
    found: [String; 2],
    knobs: [Knob; 2],
}

impl TwoKnobs {
    fn new(preempt: &str, wakeup: &str) -> TwoKnobs {
        let knobs = [knob("preempt", preempt), knob("wakeup_preemption", wakeup)];
        TwoKnobs { now: Nanos(0), found: [preempt.to_owned(), wakeup.to_owned()], knobs }
    }

    fn seen(&self, realtime: Option<i32>) -> Observation {
        let realtime = realtime.map(|count| (0..count).map(task).collect());
        Observation { at: self.now, realtime, knobs: self.knobs.to_vec(), ..Observation::default() }
    }

    fn values(&self) -> [&str; 2] {
        self.knobs.each_ref().map(|knob| knob.value.as_str())
    }

    fn carry_out(&mut self, decisions: &[Decision]) {
        for decision in decisions {
            let at = self.knobs.iter().position(|knob| knob.name == decision.knob()).unwrap();
            match decision {
                Decision::Set { was, to, .. } => {
                    assert_eq!(&self.knobs[at].value, was);
                    self.knobs[at].value.clone_from(to);
                }
                Decision::Restore { .. } => self.knobs[at].value.clone_from(&self.found[at]),
                Decision::Stop { .. } => {}
            }
        }
    }
}

fn suppress() -> Adaptation {
    Adaptation::of(vec![Box::new(Suppress)], 90).unwrap()
}

#[test]
fn wished_knobs_are_set_once_and_stay() {
    let (mut machine, mut adaptation) = (TwoKnobs::new("full", "1"), suppress());
    let first = adaptation.decide(&machine.seen(None));
    machine.carry_out(&first);
    assert_eq!(machine.values(), ["lazy", "0"]);
    assert!(adaptation.decide(&machine.seen(None)).is_empty());
}

#[test]
fn knob_changed_by_others_is_left_alone_for_good() {
    let (mut machine, mut adaptation) = (TwoKnobs::new("full", "1"), suppress());
    let first = adaptation.decide(&machine.seen(None));
    machine.carry_out(&first);
    machine.knobs[0].value = "voluntary".to_owned();
    let because = "something else changed it from lazy to voluntary".to_owned();
    let (mechanism, knob) = ("suppress".to_owned(), "preempt".to_owned());
    let expected = Decision::Stop { mechanism, knob, thread: None, because };
    assert_eq!(adaptation.decide(&machine.seen(None)), [expected]);
    machine.knobs[0].value = "full".to_owned();
    assert!(adaptation.decide(&machine.seen(None)).is_empty(), "even where a value is wished");
    assert_eq!(machine.values(), ["full", "0"]);
}

#[test]
fn knob_that_becomes_unreadable_is_restored_for_good() {
    let (machine, mut adaptation) = (TwoKnobs::new("full", "1"), suppress());
    adaptation.decide(&machine.seen(None));
    let decisions = adaptation.decide(&Observation::default());
    assert_eq!(decisions.len(), 2);
    let is_restored = |one: &Decision| matches!(one, Decision::Restore { for_good: true, .. });
    assert!(decisions.iter().all(is_restored), "{decisions:?}");
    assert!(adaptation.decide(&machine.seen(None)).is_empty(), "they are not set again");
}

#[test]
fn starvation_undoes_a_knob_and_sets_none_for_throughput() {
    let (mut machine, mut adaptation) = (TwoKnobs::new("full", "1"), suppress());
    let first = adaptation.decide(&machine.seen(None));
    machine.carry_out(&first);
    adaptation.give_up(&first[0]);
    let mut starving = machine.seen(None);
    starving.starved = vec![0];
    starving.knobs.insert(0, knob("base_slice", "700000"));
    let decisions = adaptation.decide(&starving);
    let [Decision::Restore { knob, for_good: true, .. }] = decisions.as_slice() else {
        panic!("{decisions:?}")
    };
    assert_eq!(knob, "wakeup_preemption");
    starving.starved.clear();
    let decisions = adaptation.decide(&starving);
    assert!(matches!(decisions.as_slice(), [Decision::Set { knob, .. }] if knob == "base_slice"));
}

#[test]
fn knob_that_could_not_be_set_is_not_tried_again() {
    let (machine, mut adaptation) = (TwoKnobs::new("full", "1"), suppress());
    for decision in adaptation.decide(&machine.seen(None)) {
        adaptation.give_up(&decision);
    }
    assert!(adaptation.decide(&machine.seen(None)).is_empty());
}

#[test]
fn mechanisms_with_a_knob_in_common_are_refused() {
    let refused = Adaptation::of(vec![Box::new(Suppress), Box::new(Suppress)], 90).unwrap_err();
    assert_eq!(refused, "suppress and suppress both set preempt: name only one of them");
}

/// Suppress and mode, which returns to throughput after a second.
fn suppress_and_mode() -> Adaptation {
    let mode = ByTasks::after(Nanos::from_secs(1));
    Adaptation::of(vec![Box::new(Suppress), Box::new(mode)], 90).unwrap()
}

/// Observes the given number of tasks after the given time, and carries out the decisions.
fn later(
    machine: &mut TwoKnobs,
    adaptation: &mut Adaptation,
    (after, tasks): (Nanos, i32),
) -> Vec<Decision> {
    machine.now = machine.now + after;
    let decisions = adaptation.decide(&machine.seen(Some(tasks)));
    machine.carry_out(&decisions);
    decisions
}

const MS: Nanos = Nanos::from_millis(1);

#[test]
fn mode_restores_knobs_at_first_task_and_sets_them_a_second_after_the_last() {
    let (mut machine, mut adaptation) = (TwoKnobs::new("full", "1"), suppress_and_mode());
    later(&mut machine, &mut adaptation, (MS, 0));
    assert_eq!(machine.values(), ["lazy", "0"]);
    let decisions = later(&mut machine, &mut adaptation, (MS, 2));
    assert_eq!(machine.values(), ["full", "1"]);
    let because = "there are 2 real-time tasks".to_owned();
    let (mechanism, knob) = ("suppress".to_owned(), "preempt".to_owned());
    let expected = Decision::Restore { mechanism, knob, thread: None, because, for_good: false };
    assert_eq!(decisions[1], expected);
    assert!(later(&mut machine, &mut adaptation, (MS, 0)).is_empty());
    assert!(later(&mut machine, &mut adaptation, (Nanos::from_millis(998), 0)).is_empty());
    assert_eq!(later(&mut machine, &mut adaptation, (MS, 0)).len(), 2);
    assert_eq!(machine.values(), ["lazy", "0"]);
}

#[test]
fn mode_does_not_flap_when_tasks_start_and_stop_a_thousand_times() {
    let (mut machine, mut adaptation) = (TwoKnobs::new("full", "1"), suppress_and_mode());
    later(&mut machine, &mut adaptation, (MS, 1));
    for _ in 0..1000 {
        assert!(later(&mut machine, &mut adaptation, (MS, 0)).is_empty());
        assert!(later(&mut machine, &mut adaptation, (Nanos::from_millis(998), 0)).is_empty());
        assert!(later(&mut machine, &mut adaptation, (Nanos(0), 3)).is_empty());
    }
    assert_eq!(machine.values(), ["full", "1"]);
    for _ in 0..1000 {
        later(&mut machine, &mut adaptation, (MS, 1));
        assert_eq!(machine.values(), ["full", "1"]);
        later(&mut machine, &mut adaptation, (Nanos::from_secs(1), 0));
        assert_eq!(machine.values(), ["lazy", "0"]);
    }
}

#[test]
fn mode_without_knobs_to_set_or_twice_is_refused() {
    let refused = Adaptation::of(vec![Box::new(ByTasks::after(MS))], 90).unwrap_err();
    assert!(refused.starts_with("mode only decides when other mechanisms act"), "{refused}");
    let twice: Vec<Box<dyn Mechanism>> =
        vec![Box::new(Suppress), Box::new(ByTasks::after(MS)), Box::new(ByTasks::after(MS))];
    assert!(Adaptation::of(twice, 90).unwrap_err().contains("both decide the mode"));
}

fn values() -> impl Strategy<Value = (&'static str, &'static str)> {
    (
        prop::sample::select(vec!["none", "voluntary", "full", "lazy"]),
        prop::sample::select(vec!["0", "1"]),
    )
}

proptest! {
    /// Whatever others change and when: a knob that was left alone is never named again, a knob is
    /// never set to the value it has, and the same observations give the same decisions.
    #[test]
    fn decisions_are_repeatable_and_respect_knobs_left_alone(all in prop::collection::vec(values(), 1..40)) {
        let (mut one, mut other) = (suppress(), suppress());
        let mut left = BTreeSet::new();
        for (preempt, wakeup) in all {
            let seen = TwoKnobs::new(preempt, wakeup).seen(None);
            let decisions = one.decide(&seen);
            prop_assert_eq!(&decisions, &other.decide(&seen));
            for decision in &decisions {
                prop_assert!(!left.contains(decision.knob()));
                match decision {
                    Decision::Set { was, to, .. } => prop_assert!(was != to),
                    Decision::Stop { knob, .. } => { left.insert(knob.clone()); }
                    Decision::Restore { .. } => prop_assert!(false, "no mechanism restores a knob here"),
                }
            }
        }
    }

    /// With a real-time task, and for a second after it, every knob has the value it was found
    /// with; later, all are set.
    #[test]
    fn mode_follows_real_time_tasks(all in prop::collection::vec((0..700_u64, 0..3_i32), 1..200)) {
        let (mut machine, mut adaptation) = (TwoKnobs::new("full", "1"), suppress_and_mode());
        let mut last = None;
        for (after, tasks) in all {
            later(&mut machine, &mut adaptation, (Nanos::from_millis(after), tasks));
            if tasks > 0 {
                last = Some(machine.now);
            }
            let latency = last.is_some_and(|last| machine.now < last + Nanos::from_secs(1));
            prop_assert_eq!(machine.values(), if latency { ["full", "1"] } else { ["lazy", "0"] });
        }
    }
}
