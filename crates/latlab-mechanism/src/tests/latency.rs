//! Tests of knobs that are set while there are real-time tasks.

use super::super::mode::ByTasks;
use super::super::suppress::Suppress;
use super::super::transparent::Transparent;
use super::super::*;
use super::{knob, task};
use latlab_core::time::Nanos;
use proptest::prelude::*;

const PAGES: usize = 0;
const FOUND: [&str; 2] = ["0", "1"];

/// A machine that carries out decisions. Its knobs are the free pages per CPU and wake-up
/// preemption.
#[derive(Clone, Debug)]
struct PagesAndWakeup {
    now: Nanos,
    knobs: [Knob; 2],
}

impl PagesAndWakeup {
    fn new() -> PagesAndWakeup {
        let names = ["pagelist_high_fraction", "wakeup_preemption"];
        let knobs = [0, 1].map(|at| knob(names[at], FOUND[at]));
        PagesAndWakeup { now: Nanos(0), knobs }
    }

    fn seen(&self, tasks: i32) -> Observation {
        let realtime = Some((0..tasks).map(task).collect());
        Observation { at: self.now, realtime, knobs: self.knobs.to_vec(), ..Observation::default() }
    }

    /// Observes the given number of tasks `after` milliseconds, and carries out the decisions.
    fn later(&mut self, adaptation: &mut Adaptation, after: u64, tasks: i32) -> Vec<Decision> {
        self.now = self.now + Nanos::from_millis(after);
        let decisions = adaptation.decide(&self.seen(tasks));
        self.carry_out(&decisions);
        decisions
    }

    fn carry_out(&mut self, decisions: &[Decision]) {
        for decision in decisions {
            let at = self.knobs.iter().position(|knob| knob.name == decision.knob()).unwrap();
            match decision {
                Decision::Set { was, to, .. } => {
                    assert!(&self.knobs[at].value == was && was != to, "{decision}");
                    self.knobs[at].value.clone_from(to);
                }
                Decision::Restore { .. } => {
                    assert_ne!(self.knobs[at].value, FOUND[at], "{decision}");
                    FOUND[at].clone_into(&mut self.knobs[at].value);
                }
                Decision::Stop { .. } => {}
            }
        }
    }

    fn values(&self) -> [&str; 2] {
        self.knobs.each_ref().map(|knob| knob.value.as_str())
    }
}

fn adaptation(names: &str) -> Adaptation {
    let all = names.split(',').map(|name| -> Box<dyn Mechanism> {
        match name {
            "transparent" => Box::new(Transparent::default()),
            "suppress" => Box::new(Suppress),
            _ => Box::new(ByTasks::after(Nanos::from_secs(1))),
        }
    });
    Adaptation::of(all.collect(), 90).unwrap()
}

#[test]
fn latency_knob_is_set_from_first_task_to_a_second_after_the_last() {
    let (mut machine, mut adaptation) = (PagesAndWakeup::new(), adaptation("suppress,mode"));
    machine.later(&mut adaptation, 1, 0);
    assert_eq!(machine.values(), ["0", "0"]);
    let decisions = machine.later(&mut adaptation, 1, 1);
    assert_eq!(machine.values(), ["1000000", "1"]);
    let said = "mode: pagelist_high_fraction goes from 0 to 1000000: the kernel then frees few \
                pages at once while it holds the zone lock, as there is 1 real-time task";
    assert_eq!(decisions[1].to_string(), said);
    assert!(machine.later(&mut adaptation, 999, 0).is_empty());
    let decisions = machine.later(&mut adaptation, 1, 0);
    assert_eq!(machine.values(), ["0", "0"]);
    let said = decisions.iter().map(ToString::to_string);
    let back = "mode: pagelist_high_fraction is restored: there was no real-time task for 1 s";
    assert!(said.clone().any(|said| said == back), "{:?}", said.collect::<Vec<_>>());
}

#[test]
fn latency_knob_is_set_where_throughput_knobs_stay_set() {
    let (mut machine, mut adaptation) =
        (PagesAndWakeup::new(), adaptation("transparent,suppress,mode"));
    machine.later(&mut adaptation, 1, 0);
    assert_eq!(machine.values(), ["0", "0"]);
    machine.later(&mut adaptation, 1, 1);
    assert_eq!(machine.values(), ["1000000", "0"]);
    machine.later(&mut adaptation, 1000, 0);
    assert_eq!(machine.values(), ["0", "0"]);
}

#[test]
fn latency_knob_changed_by_others_is_left_alone_in_both_modes() {
    let (mut machine, mut adaptation) = (PagesAndWakeup::new(), adaptation("suppress,mode"));
    machine.later(&mut adaptation, 1, 1);
    "8".clone_into(&mut machine.knobs[PAGES].value);
    let decisions = machine.later(&mut adaptation, 1, 1);
    assert!(matches!(decisions.as_slice(), [Decision::Stop { .. }]), "{decisions:?}");
    for (after, tasks) in [(1, 1), (1000, 0), (1, 2), (1000, 0)] {
        machine.later(&mut adaptation, after, tasks);
        assert_eq!(machine.values()[PAGES], "8");
    }
}

#[test]
fn latency_knob_is_not_undone_when_tasks_starve() {
    let (mut machine, mut adaptation) =
        (PagesAndWakeup::new(), adaptation("transparent,suppress,mode"));
    machine.later(&mut adaptation, 1, 0);
    machine.later(&mut adaptation, 1, 1);
    let starving = |machine: &PagesAndWakeup| Observation { starved: vec![0], ..machine.seen(1) };
    let decisions = adaptation.decide(&starving(&machine));
    machine.carry_out(&decisions);
    assert_eq!(machine.values(), ["1000000", "1"], "{decisions:?}");
    assert!(adaptation.decide(&starving(&machine)).is_empty(), "there is nothing else to undo");
    machine.later(&mut adaptation, 1000, 0);
    assert_eq!(machine.values(), FOUND);
    let decisions = adaptation.decide(&starving(&machine));
    assert_eq!(
        decisions[0].knob(),
        "pagelist_high_fraction",
        "although tasks starve: {decisions:?}"
    );
}

#[test]
fn latency_knob_alone_is_no_reason_to_adapt() {
    let all: Vec<Box<dyn Mechanism>> = vec![Box::new(ByTasks::after(Nanos(0)))];
    assert!(Adaptation::of(all, 90).is_err());
    let both = adaptation("mode,suppress");
    assert_eq!(both.knobs_for(Mode::Latency), ["pagelist_high_fraction"]);
    assert!(!both.knobs_for(Mode::Throughput).contains(&"pagelist_high_fraction"));
    assert_eq!(both.knobs().len(), both.knobs_for(Mode::Throughput).len() + 1);
}

proptest! {
    /// The knob is set with a real-time task and for a second after it, and at no other time,
    /// whatever the knobs for throughput are; no knob is set twice or restored twice.
    #[test]
    fn latency_knob_follows_real_time_tasks(
        threads in any::<bool>(),
        all in prop::collection::vec((0..700_u64, 0..3_i32), 1..200),
    ) {
        let names = if threads { "transparent,suppress,mode" } else { "suppress,mode" };
        let (mut machine, mut adaptation) = (PagesAndWakeup::new(), adaptation(names));
        let mut last = None;
        for (after, tasks) in all {
            machine.later(&mut adaptation, after, tasks);
            if tasks > 0 {
                last = Some(machine.now);
            }
            let latency = last.is_some_and(|last| machine.now < last + Nanos::from_secs(1));
            let wakeup = if latency && !threads { "1" } else { "0" };
            prop_assert_eq!(machine.values(), [if latency { "1000000" } else { "0" }, wakeup]);
        }
    }
}
