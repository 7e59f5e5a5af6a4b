//! Mechanisms together: what is turned, given back and left alone.

mod latency;
mod threads;

use super::mode::ByTasks;
use super::suppress::Suppress;
use super::*;
use crate::time::Nanos;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn knob(name: &'static str, value: &str) -> Knob {
    let possible = ["none", "voluntary", "full", "lazy"].map(str::to_owned).to_vec();
    Knob { name: name.to_owned(), path: format!("/{name}"), value: value.to_owned(), possible }
}

fn task(id: i32) -> RealTimeTask {
    RealTimeTask { id, process: id, name: "task".to_owned(), priority: 80 }
}

/// A machine of two knobs on which decisions are carried out.
#[derive(Clone, Debug)]
struct Machine {
    now: Nanos,
    found: [String; 2],
    knobs: [Knob; 2],
}

impl Machine {
    fn new(preempt: &str, wakeup: &str) -> Machine {
        let knobs = [knob("preempt", preempt), knob("wakeup_preemption", wakeup)];
        Machine { now: Nanos(0), found: [preempt.to_owned(), wakeup.to_owned()], knobs }
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
                Decision::GiveBack { .. } => self.knobs[at].value.clone_from(&self.found[at]),
                Decision::Stop { .. } => {}
            }
        }
    }
}

fn suppressing() -> Adaptation {
    Adaptation::of(vec![Box::new(Suppress)], 90).unwrap()
}

#[test]
fn what_is_wished_is_turned_once_and_stays() {
    let (mut machine, mut adaptation) = (Machine::new("full", "1"), suppressing());
    let first = adaptation.decide(&machine.seen(None));
    machine.carry_out(&first);
    assert_eq!(machine.values(), ["lazy", "0"]);
    assert!(adaptation.decide(&machine.seen(None)).is_empty());
}

#[test]
fn a_knob_that_somebody_turns_is_left_alone_for_good() {
    let (mut machine, mut adaptation) = (Machine::new("full", "1"), suppressing());
    let first = adaptation.decide(&machine.seen(None));
    machine.carry_out(&first);
    machine.knobs[0].value = "voluntary".to_owned();
    let because = "somebody has turned it from lazy to voluntary".to_owned();
    let (mechanism, knob) = ("suppress".to_owned(), "preempt".to_owned());
    let expected = Decision::Stop { mechanism, knob, thread: None, because };
    assert_eq!(adaptation.decide(&machine.seen(None)), [expected]);
    machine.knobs[0].value = "full".to_owned();
    assert!(adaptation.decide(&machine.seen(None)).is_empty(), "not even when it would be wished");
    assert_eq!(machine.values(), ["full", "0"]);
}

#[test]
fn a_knob_that_can_t_be_read_any_more_is_left_alone() {
    let (machine, mut adaptation) = (Machine::new("full", "1"), suppressing());
    adaptation.decide(&machine.seen(None));
    let decisions = adaptation.decide(&Observation::default());
    assert_eq!(decisions.len(), 2);
    assert!(decisions.iter().all(|decision| matches!(decision, Decision::Stop { .. })));
}

#[test]
fn where_ordinary_tasks_starve_nothing_else_is_turned_for_throughput() {
    let (mut machine, mut adaptation) = (Machine::new("full", "1"), suppressing());
    let first = adaptation.decide(&machine.seen(None));
    machine.carry_out(&first);
    adaptation.give_up(&first[0]);
    let mut starving = machine.seen(None);
    starving.starved = vec![0];
    starving.knobs.insert(0, knob("sched_ext", "none"));
    let decisions = adaptation.decide(&starving);
    let [Decision::GiveBack { knob, for_good: true, .. }] = decisions.as_slice() else {
        panic!("{decisions:?}")
    };
    assert_eq!(knob, "wakeup_preemption");
    starving.starved.clear();
    let decisions = adaptation.decide(&starving);
    assert!(matches!(decisions.as_slice(), [Decision::Set { knob, .. }] if knob == "sched_ext"));
}

#[test]
fn a_scheduler_that_the_kernel_ejects_is_turned_by_nobody() {
    let (mut machine, mut adaptation) = (Machine::new("full", "1"), suppressing());
    machine.knobs[0] = knob("sched_ext", "none");
    let first = adaptation.decide(&machine.seen(None));
    assert_eq!(first[0].knob(), "sched_ext");
    let decisions = adaptation.decide(&machine.seen(None));
    let expected = "suppress: sched_ext is left alone from now on: it is at work no more";
    assert_eq!(decisions[0].to_string(), expected);
}

#[test]
fn what_could_not_be_turned_is_not_tried_again() {
    let (machine, mut adaptation) = (Machine::new("full", "1"), suppressing());
    for decision in adaptation.decide(&machine.seen(None)) {
        adaptation.give_up(&decision);
    }
    assert!(adaptation.decide(&machine.seen(None)).is_empty());
}

#[test]
fn two_mechanisms_never_have_one_knob() {
    let refused = Adaptation::of(vec![Box::new(Suppress), Box::new(Suppress)], 90).unwrap_err();
    assert_eq!(refused, "suppress and suppress both turn sched_ext: take one of them");
}

/// Goes back to throughput after a second.
fn both() -> Adaptation {
    let mode = ByTasks::after(Nanos::from_secs(1));
    Adaptation::of(vec![Box::new(Suppress), Box::new(mode)], 90).unwrap()
}

/// After this time it is seen that there are so many tasks. Whether anything was done.
fn later(
    machine: &mut Machine,
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
fn the_first_real_time_task_has_all_given_back_and_the_last_turned_again_after_a_second() {
    let (mut machine, mut adaptation) = (Machine::new("full", "1"), both());
    later(&mut machine, &mut adaptation, (MS, 0));
    assert_eq!(machine.values(), ["lazy", "0"]);
    let decisions = later(&mut machine, &mut adaptation, (MS, 2));
    assert_eq!(machine.values(), ["full", "1"]);
    let because = "there are 2 real-time tasks".to_owned();
    let (mechanism, knob) = ("suppress".to_owned(), "preempt".to_owned());
    let expected = Decision::GiveBack { mechanism, knob, thread: None, because, for_good: false };
    assert_eq!(decisions[1], expected);
    assert!(later(&mut machine, &mut adaptation, (MS, 0)).is_empty());
    assert!(later(&mut machine, &mut adaptation, (Nanos::from_millis(998), 0)).is_empty());
    assert_eq!(later(&mut machine, &mut adaptation, (MS, 0)).len(), 2);
    assert_eq!(machine.values(), ["lazy", "0"]);
}

#[test]
fn a_thousand_starts_and_stops_leave_it_right_and_it_does_not_flap() {
    let (mut machine, mut adaptation) = (Machine::new("full", "1"), both());
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
fn a_mode_with_nothing_to_turn_is_refused() {
    let refused = Adaptation::of(vec![Box::new(ByTasks::after(MS))], 90).unwrap_err();
    assert!(refused.starts_with("mode only says when others are to act"), "{refused}");
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
    /// Whatever somebody else turns and when: a knob that was left alone is never named again, a
    /// knob is never turned to what it is, and the same is decided again of the same.
    #[test]
    fn decisions_follow_from_what_was_seen(all in prop::collection::vec(values(), 1..40)) {
        let (mut one, mut other) = (suppressing(), suppressing());
        let mut left = BTreeSet::new();
        for (preempt, wakeup) in all {
            let seen = Machine::new(preempt, wakeup).seen(None);
            let decisions = one.decide(&seen);
            prop_assert_eq!(&decisions, &other.decide(&seen));
            for decision in &decisions {
                prop_assert!(!left.contains(decision.knob()));
                match decision {
                    Decision::Set { was, to, .. } => prop_assert!(was != to),
                    Decision::Stop { knob, .. } => { left.insert(knob.clone()); }
                    Decision::GiveBack { .. } => prop_assert!(false, "nothing asks for it"),
                }
            }
        }
    }

    /// With a real-time task, and for a second after it, every knob is as it was found; without
    /// one for longer, all are turned.
    #[test]
    fn the_mode_follows_the_tasks(all in prop::collection::vec((0..700_u64, 0..3_i32), 1..200)) {
        let (mut machine, mut adaptation) = (Machine::new("full", "1"), both());
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
