//! Changes in the order in which they were made; if `SCHED_OTHER` tasks starve, the last is undone.

use super::{Decision, Policy};

/// All changes that are in force, the newest last, each from the value that was found at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History(Vec<Decision>);

impl History {
    /// Notes decisions.
    pub(super) fn note(&mut self, decisions: &[Decision]) {
        for decision in decisions {
            let found = self.forget(decision);
            let mut change = decision.clone();
            if let Decision::Set { was, .. } = &mut change {
                if let Some(found) = found {
                    *was = found;
                }
                self.0.push(change);
            }
        }
    }

    /// Forgets the change of this decision's knob, and returns the value from before it.
    pub(super) fn forget(&mut self, decision: &Decision) -> Option<String> {
        let same =
            |one: &Decision| (one.knob(), one.thread()) == (decision.knob(), decision.thread());
        let known = self.0.iter().position(same)?;
        let Decision::Set { was, .. } = self.0.remove(known) else { return None };
        Some(was)
    }

    /// Notes that this decision could not be carried out: earlier changes remain.
    pub(super) fn revert(&mut self, decision: &Decision) {
        let found = self.forget(decision);
        let (Some(found), Decision::Set { was: before, .. }) = (found, decision) else { return };
        if found != *before {
            let mut change = decision.clone();
            if let Decision::Set { was, to, .. } = &mut change {
                *to = std::mem::replace(was, found);
            }
            self.0.push(change);
        }
    }

    /// Returns the decision that undoes a change because `SCHED_OTHER` tasks starve on these CPUs:
    /// the newest raise of a thread's priority, or, where no thread was raised, the newest change
    /// of a file. Lowered threads stay lowered: no task waits longer because of them.
    pub(super) fn undo(&self, starved: &[u32]) -> Option<Decision> {
        let raise = self.0.iter().rfind(|one| is_raise(one));
        let newest = raise.or_else(|| self.0.iter().rfind(|one| one.thread().is_none()))?;
        let cpus: Vec<String> = starved.iter().map(u32::to_string).collect();
        let cpus =
            if cpus.len() == 1 { "CPU" } else { "the CPUs" }.to_owned() + " " + &cpus.join(", ");
        Some(Decision::Restore {
            mechanism: newest.mechanism().to_owned(),
            knob: newest.knob().to_owned(),
            thread: newest.thread(),
            because: format!(
                "no SCHED_OTHER task ran for 1 s on {cpus}, and this was the last change; it is \
                 left alone from now on"
            ),
            for_good: true,
        })
    }
}

fn is_raise(decision: &Decision) -> bool {
    let Decision::Set { thread: Some(_), was, to, .. } = decision else { return false };
    let priority = |text: &String| text.parse().map_or(0, Policy::priority);
    priority(to) > priority(was)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(knob: &str, thread: Option<i32>, was: &str, to: &str) -> Decision {
        let [mechanism, knob, was, to] = ["x", knob, was, to].map(str::to_owned);
        Decision::Set { mechanism, knob, thread, was, to, because: String::new() }
    }

    #[test]
    fn undo_takes_newest_raise_first_then_newest_file() {
        let mut history = History::default();
        history.note(&[
            set("preempt", None, "full", "lazy"),
            set("irq/5-a", Some(5), "fifo 50", "fifo 70"),
            set("irq/6-b", Some(6), "fifo 50", "other"),
            set("irq/7-c", Some(7), "other", "fifo 60"),
        ]);
        let mut order = Vec::new();
        while let Some(undone) = history.undo(&[1]) {
            assert!(undone.to_string().contains("ran for 1 s on CPU 1, and"), "{undone}");
            order.push(undone.knob().to_owned());
            history.note(&[undone]);
        }
        assert_eq!(order, ["irq/7-c", "irq/5-a", "preempt"]);
    }

    /// The task that needed it most has ended, and the priority is still above the value from
    /// before.
    #[test]
    fn thread_that_is_lowered_a_little_is_raised_still() {
        let mut history = History::default();
        history.note(&[set("irq/5-a", Some(5), "fifo 50", "fifo 80")]);
        history.note(&[set("irq/5-a", Some(5), "fifo 80", "fifo 60")]);
        assert_eq!(history.undo(&[1]).expect("it is undone").knob(), "irq/5-a");
        history.note(&[set("irq/5-a", Some(5), "fifo 60", "fifo 50")]);
        assert_eq!(history.undo(&[1]), None);
    }

    #[test]
    fn thread_that_could_not_be_raised_further_is_undone() {
        let mut history = History::default();
        history.note(&[set("irq/5-a", Some(5), "fifo 50", "fifo 60")]);
        let further = set("irq/5-a", Some(5), "fifo 60", "fifo 80");
        history.note(std::slice::from_ref(&further));
        history.revert(&further);
        assert_eq!(history.undo(&[1]).expect("it is raised still").knob(), "irq/5-a");
        let first = set("irq/6-b", Some(6), "fifo 50", "fifo 60");
        let mut history = History::default();
        history.note(std::slice::from_ref(&first));
        history.revert(&first);
        assert_eq!(history.undo(&[1]), None, "it was never raised");
    }

    #[test]
    fn undo_skips_changes_that_were_restored() {
        let mut history = History::default();
        history.note(&[set("preempt", None, "full", "lazy")]);
        history.forget(&set("preempt", None, "full", "lazy"));
        assert_eq!(history.undo(&[0, 1]), None);
    }
}
