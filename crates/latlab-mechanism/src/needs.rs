//! The needs that all mechanisms have found, joined to one policy for each thread.

use super::{Assessment, Description, Mode, Need, Policy, Thread};

/// The policy that a thread should have, and the mechanism that wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedPolicy {
    pub(super) mechanism: &'static str,
    pub(super) to: Policy,
    /// As the end of a sentence.
    pub(super) because: String,
}

/// The needs that all mechanisms have found at one moment.
pub(super) struct JoinedNeeds<'a> {
    /// Each mechanism and its findings, in order of the mechanisms.
    found: Vec<(Description, &'a Assessment)>,
    /// The highest priority that a thread is given.
    ceiling: u32,
    /// The mechanism that makes threads that no task needs `SCHED_OTHER`, and why.
    demotes: Option<(&'static str, String)>,
}

impl<'a> JoinedNeeds<'a> {
    /// Joins the needs of all mechanisms; none where no mechanism looks for any.
    pub(super) fn join(
        found: Vec<(Description, &'a Assessment)>,
        mode: Option<&(Mode, String)>,
        ceiling: u32,
    ) -> Option<JoinedNeeds<'a>> {
        let finder = found.iter().find(|(one, _)| one.threads.finds())?.0.name;
        let demotes = match mode {
            Some((Mode::Throughput, why)) => Some((finder, format!("it can wait, as {why}"))),
            _ => { found.iter() }.find_map(|(one, its)| Some((one.name, its.demotes?.to_owned()))),
        };
        Some(JoinedNeeds { found, ceiling, demotes })
    }

    /// Returns the policy for this thread, which was found with the policy `found`; none where it
    /// should be as it was found.
    pub(super) fn wanted(&self, thread: &Thread, found: Policy) -> Option<WantedPolicy> {
        let wanted = match self.most_urgent(thread.id) {
            Some(need) => self.raised(thread.id, found, need)?,
            None => self.demoted(thread)?,
        };
        (wanted.to != found).then_some(wanted)
    }

    /// The need of the task of highest priority that needs this thread.
    fn most_urgent(&self, thread: i32) -> Option<&Need> {
        let all = self.found.iter().flat_map(|(_, its)| &its.needs);
        let needs = all.filter(|need| need.thread == thread);
        // Of equals the first, so that the reason stays the same.
        needs.reduce(|most, need| if need.priority > most.priority { need } else { most })
    }

    /// The highest priority that a mechanism wants, up to the ceiling; none where the thread was
    /// found with at least that.
    fn raised(&self, thread: i32, found: Policy, need: &Need) -> Option<WantedPolicy> {
        let wishes = self.found.iter().filter_map(|(one, its)| {
            let own = its.needs.iter().filter(|need| need.thread == thread);
            let own = own.map(|need| need.priority).max();
            Some((one.name, one.priority.choose(own, need.priority)?))
        });
        let (mechanism, priority) =
            wishes.reduce(|most, wish| if wish.1 > most.1 { wish } else { most })?;
        let priority = priority.min(self.ceiling).min(need.priority);
        (priority > found.priority()).then(|| {
            let to = Policy::Fifo(priority);
            let because = format!("{} at {}", need.because, need.priority_in_words());
            WantedPolicy { mechanism, to, because }
        })
    }

    /// Softirq threads keep their policy: they run timers, too.
    fn demoted(&self, thread: &Thread) -> Option<WantedPolicy> {
        let (mechanism, because) = self.demotes.clone()?;
        thread.interrupt?;
        Some(WantedPolicy { mechanism, to: Policy::Other, because })
    }
}

impl Need {
    fn priority_in_words(&self) -> String {
        if self.priority > 99 {
            return "deadline".to_owned();
        }
        format!("priority {}", self.priority)
    }
}
