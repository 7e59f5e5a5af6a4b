//! The needs that all mechanisms know of, joined to one wish for each thread.

use super::{Mechanism, Mode, Need, Observation, Part, Policy, Thread};

/// What a thread should be, and whose wish that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) mechanism: &'static str,
    pub(super) to: Policy,
    /// As the end of a sentence.
    pub(super) because: String,
}

/// What all mechanisms know and wish at one moment.
pub(super) struct Joined<'a> {
    mechanisms: &'a [Box<dyn Mechanism>],
    /// What each of them knows, in their order.
    needs: Vec<Vec<Need>>,
    /// No thread is raised above that.
    ceiling: u32,
    /// Who would have all threads that nobody needs be ordinary tasks, and why.
    demotes: Option<(&'static str, String)>,
}

/// Has all mechanisms look. None where none of them finds out who needs which thread.
pub(super) fn join<'a>(
    mechanisms: &'a mut [Box<dyn Mechanism>],
    seen: &Observation,
    mode: Option<&(Mode, String)>,
    ceiling: u32,
) -> Option<Joined<'a>> {
    let needs = mechanisms.iter_mut().map(|one| one.needs(seen)).collect();
    let mut all = mechanisms.iter();
    let finder = all.find(|one| matches!(one.part(), Part::Asked | Part::Wakes))?.name();
    let demotes = match mode {
        Some((Mode::Throughput, why)) => Some((finder, format!("it can wait, as {why}"))),
        _ => mechanisms.iter().find_map(|one| Some((one.name(), one.demotes()?.to_owned()))),
    };
    Some(Joined { mechanisms, needs, ceiling, demotes })
}

impl Joined<'_> {
    /// What this thread should be, which was found with that policy; none where it should be as it
    /// was found.
    pub(super) fn wanted(&self, thread: &Thread, found: Policy) -> Option<Wanted> {
        let wanted = match self.most_urgent(thread.id) {
            Some(need) => self.raised(thread.id, found, need)?,
            None => self.demoted(thread)?,
        };
        (wanted.to != found).then_some(wanted)
    }

    /// The need of the task of highest priority that needs this thread.
    fn most_urgent(&self, thread: i32) -> Option<&Need> {
        let needs = self.needs.iter().flatten().filter(|need| need.thread == thread);
        // Of equals the first, so that the reason stays the same.
        needs.reduce(|most, need| if need.priority > most.priority { need } else { most })
    }

    /// The highest that a mechanism wishes, up to the ceiling, where that is more than was found.
    fn raised(&self, thread: i32, found: Policy, need: &Need) -> Option<Wanted> {
        let wishes = self.mechanisms.iter().zip(&self.needs).filter_map(|(mechanism, own)| {
            let own = own.iter().filter(|need| need.thread == thread).map(|need| need.priority);
            Some((mechanism.name(), mechanism.priority(own.max(), need.priority)?))
        });
        let (mechanism, priority) =
            wishes.reduce(|most, wish| if wish.1 > most.1 { wish } else { most })?;
        let priority = priority.min(self.ceiling).min(need.priority);
        (priority > found.priority()).then(|| {
            let to = Policy::Fifo(priority);
            Wanted { mechanism, to, because: format!("{} at {}", need.because, need.said()) }
        })
    }

    /// Soft-irq threads do the work of timers, too: they stay.
    fn demoted(&self, thread: &Thread) -> Option<Wanted> {
        let (mechanism, because) = self.demotes.clone()?;
        thread.interrupt?;
        Some(Wanted { mechanism, to: Policy::Other, because })
    }
}

impl Need {
    fn said(&self) -> String {
        if self.priority > 99 {
            return "deadline".to_owned();
        }
        format!("priority {}", self.priority)
    }
}
