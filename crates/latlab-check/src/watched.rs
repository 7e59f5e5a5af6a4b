//! A thread and the candidates for the wait of its cycle. It is judged by every candidate from the
//! first wait on: the right candidate may be known only at the end.

use super::awake::Awake;
use super::event::{Event, EventKind, StackId, Thread};
use super::finding::Finding;
use super::memory::Memory;
use super::report::Frame;
use super::spin::Spins;
use super::thread::{Cyclic, Terms};
use super::wait::Wait;
use super::wake_up::WakeUp;
use latlab_core::time::Nanos;
use std::cmp::Reverse;

/// A thread, with or without a known cycle.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) thread: Thread,
    /// The memory of its process, if it was read.
    pub(super) memory: Option<Memory>,
    awake: Awake,
    spins: Spins,
    terms: Terms,
    candidates: Vec<Candidate>,
    /// The start of the call in progress, if it is a wait that has not counted.
    start: Option<(Wait, Event)>,
}

/// A thread judged by one of its waits.
#[derive(Debug)]
struct Candidate {
    /// How often it waited.
    count: u64,
    /// The count, plus the weight of the candidate that it replaced.
    weight: u64,
    cyclic: Cyclic,
    start: Start,
}

/// Whether the waits so far belong to the start of a program: they come from other places than the
/// waits of its loop.
#[derive(Debug, Default)]
struct Start {
    is_over: bool,
    waits: u64,
    /// Where the last waits came from, and how many in a row.
    place: Option<StackId>,
    same: u64,
    /// The thread judged from the first of these on.
    judge: Option<Box<Cyclic>>,
}

/// Smallest number of waits that make a cycle. For a futex it is larger: threads also wait for one
/// as they start and end.
const FEWEST: u64 = 3;
const FEWEST_FUTEX: u64 = 10;
/// Number of waits in a row from one place that make a loop.
const LOOP: u64 = 5;
/// Largest number of waits of a start.
const START: u64 = 100;
/// A wait is rare if it is less than this part of the most frequent one.
const RARE: u64 = 20;
/// A thread is judged by its waits for at most this many files: the files for which it waits most.
/// A further file replaces the file with the least weight, and inherits that weight. So the files
/// of a loop soon outweigh the files of earlier waits ("space saving": Metwally, Agrawal, El Abbadi
/// 2005).
const FILES: usize = 4;

impl Candidate {
    fn handle(&mut self, event: &Event, terms: Terms) {
        self.cyclic.handle(event);
        if let Some(judge) = &mut self.start.judge {
            judge.handle(event);
        }
        let wait = self.cyclic.wait;
        if self.start.is_over || Wait::of(&event.kind, event.thread.policy) != Some(wait) {
            return;
        }
        if self.start.has_moved(stack_of(event)) {
            let mut judge = Cyclic::new(event.thread, wait, terms);
            judge.handle(event);
            self.start.judge = Some(Box::new(judge));
        }
        self.start.is_over = self.start.same == LOOP || self.start.waits == START;
        let judge = self.start.judge.take_if(|_| self.start.is_over);
        if let Some(judge) = judge.filter(|_| self.start.same == LOOP) {
            self.cyclic = *judge;
        }
    }
}

impl Start {
    /// Adds a wait from this place. Returns whether the one before came from another.
    fn has_moved(&mut self, place: Option<StackId>) -> bool {
        let has_moved = place != self.place;
        self.waits += 1;
        self.same = if has_moved { 1 } else { self.same + 1 };
        self.place = place;
        has_moved
    }
}

fn stack_of(event: &Event) -> Option<StackId> {
    match event.kind {
        EventKind::Enter { stack, .. } => stack,
        _ => None,
    }
}

impl Watched {
    pub(super) fn new(thread: Thread, terms: Terms) -> Watched {
        let (memory, awake, spins) = (None, Awake::default(), Spins::default());
        Watched { thread, memory, awake, spins, terms, candidates: Vec::new(), start: None }
    }

    pub(super) fn handle(&mut self, event: &Event) {
        self.thread = event.thread;
        self.awake.handle(event);
        self.spins.handle(event);
        for candidate in &mut self.candidates {
            candidate.handle(event, self.terms);
        }
        match &event.kind {
            EventKind::Enter { .. } => {
                let wait = Wait::of(&event.kind, event.thread.policy);
                self.start = wait.map(|wait| (wait, event.clone()));
                if wait.is_some_and(Wait::counts_without_sleep) {
                    self.count();
                }
            }
            EventKind::Out { reason, .. } if reason.is_sleep() => {
                if let Some(new) = self.count() {
                    new.handle(event);
                }
            }
            EventKind::Leave { .. } => self.start = None,
            _ => {}
        }
    }

    /// Counts the wait in progress. Returns the judge of a new one, which has handled its start.
    fn count(&mut self) -> Option<&mut Cyclic> {
        let (wait, start) = self.start.take()?;
        let known = self.candidates.iter_mut().find(|candidate| candidate.cyclic.wait == wait);
        if let Some(known) = known {
            known.count += 1;
            known.weight += 1;
            return None;
        }
        let weight = 1 + if wait.is_of_file() { self.make_room() } else { 0 };
        let mut cyclic = Cyclic::new(self.thread, wait, self.terms);
        cyclic.handle(&start);
        let start = Start { waits: 1, place: stack_of(&start), same: 1, ..Start::default() };
        self.candidates.push(Candidate { count: 1, weight, cyclic, start });
        self.candidates.last_mut().map(|candidate| &mut candidate.cyclic)
    }

    /// Makes room for the wait for one more file. Returns the weight of the file that had it.
    fn make_room(&mut self) -> u64 {
        let all = self.candidates.iter().enumerate();
        let files = all.filter(|(_, candidate)| candidate.cyclic.wait.is_of_file());
        let weight = |(_, one): &(usize, &Candidate)| (one.weight, Reverse(one.cyclic.wait.rank()));
        let (count, least) = (files.clone().count(), files.min_by_key(weight));
        let Some((least, _)) = least.filter(|_| count >= FILES) else { return 0 };
        self.candidates.swap_remove(least).weight
    }

    /// Adds an explained wake-up, whose events have been handled.
    pub(super) fn explain(&mut self, wake_up: &WakeUp) {
        for candidate in &mut self.candidates {
            candidate.cyclic.explain(wake_up);
        }
    }

    /// The median period, once enough cycles have shown it.
    pub(super) fn period(&self) -> Option<Nanos> {
        const ENOUGH: u64 = 32;
        self.cyclic().filter(|cyclic| cyclic.cycles >= ENOUGH)?.periods.median()
    }

    /// Whether it has completed a cycle.
    pub(super) fn has_cycles(&self) -> bool {
        self.cyclic().is_some_and(|cyclic| cyclic.cycles > 0)
    }

    /// The thread judged by the wait of its cycle, from what is known so far.
    pub(super) fn cyclic(&self) -> Option<&Cyclic> {
        Some(&self.candidates.get(self.best()?)?.cyclic)
    }

    /// The same, at the end.
    pub(super) fn into_cyclic(mut self) -> Option<Cyclic> {
        let best = self.best()?;
        Some(self.candidates.swap_remove(best).cyclic)
    }

    /// The thread caused no event in this time, and ran for part of it.
    pub(super) fn run_silently(&mut self, from: Nanos, to: Nanos, ran: Nanos) {
        self.awake = Awake::without_events(from, to, ran);
    }

    /// What is wrong with the thread as a whole.
    pub(super) fn findings(
        &mut self,
        frames: &mut dyn FnMut(u32, StackId) -> Vec<Frame>,
    ) -> Vec<Finding> {
        let busy = self.busy();
        self.spins.finding(self.thread, frames).into_iter().chain(busy).collect()
    }

    /// Whether the thread ran too long without sleep.
    pub(super) fn busy(&self) -> Option<Finding> {
        let begun = self.cyclic().filter(|cyclic| cyclic.cycles > 0);
        self.awake.finding(self.thread, begun.and_then(|cyclic| cyclic.begun))
    }

    /// Watching ends at that time.
    pub(super) fn stop(&mut self, at: Nanos) {
        self.awake.stop(at);
        for candidate in &mut self.candidates {
            candidate.cyclic.stop(at);
        }
    }

    /// The thread has ended: keeps only the wait of its cycle.
    pub(super) fn end(&mut self, at: Nanos) {
        self.awake.stop(at);
        let best = self.best().map(|best| self.candidates.swap_remove(best));
        self.candidates = best.into_iter().collect();
    }

    /// The wait of the cycle: the one with the best rank among the waits that are not rare.
    fn best(&self) -> Option<usize> {
        let most = self.candidates.iter().map(|candidate| candidate.count).max()?;
        let all = self.candidates.iter().enumerate();
        let fewest = |wait| if wait == Wait::Futex { FEWEST_FUTEX } else { FEWEST };
        let frequent = all.filter(|(_, one)| one.count >= fewest(one.cyclic.wait).max(most / RARE));
        let best = frequent.min_by_key(|(_, one)| (one.cyclic.wait.rank(), Reverse(one.count)));
        best.map(|(place, _)| place)
    }
}
