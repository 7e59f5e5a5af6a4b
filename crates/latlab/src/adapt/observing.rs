//! What mechanisms observe of this machine.

use super::counting::Counting;
use crate::failure::{Failure, Result};
use crate::mechanism;
use latlab_bpf::wakers::{Violations, Wakers};
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::{Adaptation, Knob, Observation, RealTimeTask, Request, Thread, Wake};
use latlab_core::time::Nanos;
use latlab_sys::irq::{self, InterruptThreads};
use latlab_sys::knob::{self, Standing, Unreadable};
use latlab_sys::root::Root;
use latlab_sys::{clock, sched};
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
    /// Wakes of tasks that have not been looked up yet, and by threads that are too young.
    early: Vec<Wake>,
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
        })
    }

    /// Whether what is seen late serves real-time tasks late.
    pub(super) fn is_in_a_hurry(&self) -> bool {
        self.counting.is_some()
    }

    /// What there is now, with what processes ask for.
    pub(super) fn look(&mut self, requests: Vec<Request>) -> Observation {
        let (realtime, wakes) = self.tasks();
        let threads = self.threads.as_mut().map(InterruptThreads::list).unwrap_or_default();
        let wakes = self.put_off(wakes);
        let (knobs, _) = look(&self.root, &self.knobs);
        let (at, starved) = (clock::now(), Vec::new());
        Observation { at, realtime, knobs, threads, wakes, requests, starved }
    }

    /// The real-time tasks, and who has woken them.
    fn tasks(&mut self) -> (Option<Vec<RealTimeTask>>, Vec<Wake>) {
        let Some(counting) = &mut self.counting else { return (None, Vec::new()) };
        let mut wakes = std::mem::take(&mut self.early);
        // Who decides is not served.
        let ours = sched::thread_id();
        let came = self.wakers.as_mut().map(Wakers::take).unwrap_or_default();
        wakes.extend(came.into_iter().filter(|wake| wake.task != ours));
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

    /// How often real-time tasks were woken by tasks of lower priority, where that was watched.
    pub(super) fn violations(&self) -> Option<Violations> {
        self.wakers.as_ref().map(Wakers::violations)
    }

    /// Waits until there may be something else to see, at most so long.
    pub(super) fn wait(&mut self, at_most: Nanos) {
        let at_most = if self.early.is_empty() { at_most } else { at_most.min(SOON) };
        match &mut self.counting {
            Some(counting) => counting.wait(at_most, self.wakers.as_ref().map(AsFd::as_fd)),
            None => std::thread::park_timeout(Duration::from_nanos(at_most.0)),
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

/// That these mechanisms can't work, and which of those that were named can do without.
fn without(names: &[String], needing: &[&str], why: &dyn std::fmt::Display) -> Failure {
    let rest: Vec<String> =
        names.iter().filter(|name| !needing.contains(&name.as_str())).cloned().collect();
    let hint = match mechanism::adaptation(&rest, &Configuration::default()) {
        Ok(_) if !rest.is_empty() => format!("; or do without: --mechanisms {}", rest.join(",")),
        _ => String::new(),
    };
    let all = needing.iter().filter(|one| names.iter().any(|name| name == *one));
    let all = all.copied().collect::<Vec<_>>().join(",");
    Failure::Unsupported(format!("{all}: {why}{hint}"))
}

/// Refuses mechanisms none of which can do anything here; of what some of them can't, sentences.
pub(super) fn check(adaptation: &Adaptation, names: &[String], root: &Root) -> Result<Vec<String>> {
    let (knobs, unreadable) = look(root, &adaptation.knobs());
    let mut cant: Vec<String> =
        unreadable.iter().map(|(name, why)| format!("{name} can't be turned: {why}")).collect();
    let turns_threads = adaptation.turns_threads();
    if turns_threads && !irq::all_in_threads(root) {
        cant.push(FEW_THREADS.to_owned());
    }
    let is_one = |thread: &Thread| thread.interrupt.is_some();
    let mut threads = InterruptThreads::new(root.clone());
    if !knobs.is_empty() || (turns_threads && threads.list().iter().any(is_one)) {
        return Ok(cant);
    }
    // Both files are missing for one reason, mostly.
    if let Some((_, why)) = unreadable.first() {
        cant.retain(|sentence| sentence == FEW_THREADS);
        cant.insert(0, why.to_string());
    }
    if turns_threads && cant.is_empty() {
        cant.push("no thread of the kernel is to be seen from here".to_owned());
    }
    Err(Failure::Unsupported(format!("{}: {}", names.join(","), cant.join("; "))))
}

const FEW_THREADS: &str = "this kernel handles interrupts in threads only where drivers ask for \
                           that: boot it with threadirqs, or take one with PREEMPT_RT";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_t_work_is_told_what_can_do_without() {
        let names = |text: &str| mechanism::names(text).unwrap();
        let refused = |all: &str, needing: &[&str]| match without(&names(all), needing, &"no BTF") {
            Failure::Unsupported(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused("", &["transparent", "inherit"]),
            "transparent,inherit: no BTF; or do without: --mechanisms suppress,mode"
        );
        let all = "selective,transparent,inherit";
        let expected = "transparent: no BTF; or do without: --mechanisms selective,inherit";
        assert_eq!(refused(all, &["transparent"]), expected);
        assert_eq!(refused("transparent,mode", &["transparent"]), "transparent: no BTF");
    }
}
