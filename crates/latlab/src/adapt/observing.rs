//! What mechanisms observe of this machine.

use super::able::without;
use super::counting::Counting;
use super::scheduler;
use crate::failure::Result;
use latlab_bpf::wakers::{Meter, Wakers};
use latlab_core::mechanism::suppress::SCHED_EXT;
use latlab_core::mechanism::{Adaptation, Knob, Observation, RealTimeTask, Request, Wake};
use latlab_core::time::Nanos;
use latlab_sys::irq::InterruptThreads;
use latlab_sys::knob::{self, Standing, Unreadable};
use latlab_sys::root::Root;
use latlab_sys::{clock, sched};
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::time::Duration;

/// Looks at whatever the mechanisms at work decide upon.
#[derive(Debug)]
pub(super) struct Observing {
    root: Root,
    knobs: Vec<&'static str>,
    counting: Option<Counting>,
    threads: Option<InterruptThreads>,
    wakers: Option<Wakers>,
    /// Wakes that nobody has decided upon yet: those of tasks that have not been looked up, those by
    /// threads that are too young, and those that have just come.
    early: Vec<Wake>,
    /// Wakes of tasks that are there which were decided upon, whatever came of it.
    shown: BTreeSet<Wake>,
}

/// What was heard of who wakes whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// Nothing at all.
    Nothing,
    /// Nothing that is not known.
    Known,
    /// Nothing that was not decided upon before.
    Again,
    /// Something else.
    First,
}

/// When it is looked again at what was put off.
const SOON: Nanos = Nanos::from_millis(5);

impl Observing {
    /// Begins to look. Refused where something can't be seen that a mechanism needs.
    pub(super) fn start(
        adaptation: &Adaptation,
        names: &[String],
        root: &Root,
    ) -> Result<Observing> {
        let count = |needing: Vec<&str>| {
            Counting::start(root).map_err(|deaf| without(names, &needing, &deaf))
        };
        let counting = Some(adaptation.counts_tasks()).filter(|needing| !needing.is_empty());
        let wakers = Some(adaptation.hears_wakes()).filter(|needing| !needing.is_empty());
        let watch = |needing: Vec<&str>| {
            Wakers::load().map_err(|refusal| without(names, &needing, &refusal))
        };
        let threads = adaptation.turns_threads().then(|| InterruptThreads::new(root.clone()));
        Ok(Observing {
            root: root.clone(),
            knobs: adaptation.knobs(),
            counting: counting.map(count).transpose()?,
            threads,
            wakers: wakers.map(watch).transpose()?,
            early: Vec::new(),
            shown: BTreeSet::new(),
        })
    }

    /// Whether what is seen late serves real-time tasks late.
    pub(super) fn is_in_a_hurry(&self) -> bool {
        self.counting.is_some()
    }

    /// What there is now, with what processes ask for; of wakes those that are not known.
    pub(super) fn look(
        &mut self,
        requests: Vec<Request>,
        known: impl Fn(&Wake) -> bool,
    ) -> Observation {
        self.hear(known);
        let (realtime, wakes) = self.tasks();
        let threads = self.threads.as_mut().map(InterruptThreads::list).unwrap_or_default();
        let wakes = self.put_off(wakes);
        self.remember(realtime.as_deref().unwrap_or_default(), &wakes);
        let (knobs, _) = look(&self.root, &self.knobs);
        let (at, starved) = (clock::now(), Vec::new());
        Observation { at, realtime, knobs, threads, wakes, requests, starved }
    }

    /// What is not seen as it should be, once.
    pub(super) fn complaint(&mut self) -> Option<String> {
        self.counting.as_mut()?.complaint()
    }

    /// Notes the wakes that were told and are not known.
    fn hear(&mut self, known: impl Fn(&Wake) -> bool) -> Heard {
        // Who decides is not served.
        let ours = sched::thread_id();
        let mut came = self.wakers.as_mut().map(Wakers::take).unwrap_or_default();
        if came.is_empty() {
            return Heard::Nothing;
        }
        came.retain(|wake| wake.task != ours && !known(wake));
        let is_first = |wake: &Wake| !self.shown.contains(wake) && !self.early.contains(wake);
        let heard = match came.iter().any(is_first) {
            _ if came.is_empty() => Heard::Known,
            true => Heard::First,
            false => Heard::Again,
        };
        self.early.extend(came);
        heard
    }

    /// Remembers that these wakes are decided upon, as long as their tasks are there.
    fn remember(&mut self, tasks: &[RealTimeTask], wakes: &[Wake]) {
        self.shown.extend(wakes);
        self.shown.retain(|wake| tasks.iter().any(|task| task.id == wake.task));
    }

    /// The real-time tasks, and who has woken them.
    fn tasks(&mut self) -> (Option<Vec<RealTimeTask>>, Vec<Wake>) {
        let Some(counting) = &mut self.counting else { return (None, Vec::new()) };
        let mut wakes = std::mem::take(&mut self.early);
        for wake in &wakes {
            counting.hear_of(wake.task);
        }
        let (tasks, looked) = counting.tasks();
        // Those that have just come are looked up soon.
        let known = |wake: &Wake| looked || tasks.iter().any(|task| task.id == wake.task);
        (wakes, self.early) = wakes.into_iter().partition(known);
        (Some(tasks.to_vec()), wakes)
    }

    /// Of these, those by threads that are old enough; the others are for later.
    fn put_off(&mut self, wakes: Vec<Wake>) -> Vec<Wake> {
        let Some(threads) = &self.threads else { return wakes };
        let young = |id: Option<i32>| id.is_some_and(|id| threads.is_young(id));
        let old = |wake: &Wake| !young(Some(wake.thread)) && !young(wake.behind);
        let (wakes, early): (Vec<Wake>, Vec<Wake>) = wakes.into_iter().partition(old);
        self.early.extend(early);
        wakes
    }

    /// By which another thread knows what was counted of who wakes whom, where that is watched.
    pub(super) fn meter(&self) -> Option<Meter> {
        self.wakers.as_ref().map(Wakers::meter)
    }

    /// Waits until there may be something else to see, at most so long, and at least `rest` but for a
    /// task that was just heard of and for one that is woken by a thread for the first time.
    pub(super) fn wait(&mut self, at_most: Nanos, rest: Nanos, known: impl Fn(&Wake) -> bool) {
        let at_most = if self.early.is_empty() { at_most } else { at_most.min(SOON) };
        let begin = clock::now();
        let mut end = begin + at_most.max(rest);
        loop {
            let left = end - clock::now();
            let Some(counting) = &mut self.counting else {
                return std::thread::park_timeout(Duration::from_nanos(left.0));
            };
            let heard =
                left > Nanos(0) && counting.wait(left, self.wakers.as_ref().map(AsFd::as_fd));
            if left == Nanos(0) || heard {
                return;
            }
            let later = self.counting.as_ref().is_some_and(Counting::has_heard);
            match self.hear(&known) {
                Heard::First => return,
                Heard::Known => {}
                Heard::Nothing if later => {}
                // Somebody has asked for something, unless the time is up.
                Heard::Nothing | Heard::Again => end = end.min(begin + rest),
            }
        }
    }
}

/// These knobs as they stand, and why others can't be read.
pub(super) fn look(
    root: &Root,
    names: &[&'static str],
) -> (Vec<Knob>, Vec<(&'static str, Unreadable)>) {
    let (mut knobs, mut unreadable) = (Vec::new(), Vec::new());
    for &name in names {
        if name == SCHED_EXT {
            knobs.extend(scheduler::standing(root));
            continue;
        }
        match knob::standing(root, name) {
            Ok(Standing { path, value, possible }) => {
                let path = path.display().to_string();
                knobs.push(Knob { name: name.to_owned(), path, value, possible });
            }
            Err(why) => unreadable.push((name, why)),
        }
    }
    (knobs, unreadable)
}
