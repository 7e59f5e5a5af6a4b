//! The source of observations, on which mechanisms base their decisions.

use super::knobs;
use super::mailbox::RequestReader;
use super::precheck::unsupported;
use super::realtime_tasks::RealTimeTasks;
use super::starvation::StarvationDetector;
use super::wakes::{PendingWakes, Received};
use latlab_bpf::wakers::{WakerCounters, Wakers};
use latlab_core::time::Nanos;
use latlab_mechanism::{Adaptation, Observation, RealTimeTask, Wake};
use latlab_part::failure::Result;
use latlab_sys::clock;
use latlab_sys::irq::InterruptThreads;
use latlab_sys::root::Root;
use std::time::Duration;

/// Observes the machine, as far as the active mechanisms need it.
#[derive(Debug)]
pub(super) struct ObservationSource {
    root: Root,
    knobs: Vec<&'static str>,
    tasks: Option<RealTimeTasks>,
    threads: Option<InterruptThreads>,
    wakes: PendingWakes,
    requests: RequestReader,
    starvation: StarvationDetector,
}

/// Longest wait while wake-ups are pending.
const PENDING_INTERVAL: Nanos = Nanos::from_millis(5);

impl ObservationSource {
    /// Starts to observe. Fails where something can't be observed that a mechanism of `names`
    /// needs.
    pub(super) fn start(
        adaptation: &Adaptation,
        names: &[String],
        root: &Root,
    ) -> Result<ObservationSource> {
        let threads = adaptation.schedules_threads().then(|| InterruptThreads::new(root.clone()));
        Ok(ObservationSource {
            root: root.clone(),
            knobs: adaptation.knobs(),
            tasks: realtime_tasks(adaptation, names, root)?,
            threads,
            wakes: PendingWakes::new(wakers(adaptation, names)?),
            requests: RequestReader::default(),
            starvation: StarvationDetector::default(),
        })
    }

    /// Adds the observations that only a daemon makes.
    pub(super) fn with_daemon(
        self,
        requests: RequestReader,
        starvation: StarvationDetector,
    ) -> ObservationSource {
        ObservationSource { requests, starvation, ..self }
    }

    /// Whether a late observation delays real-time tasks.
    pub(super) fn is_urgent(&self) -> bool {
        self.tasks.is_some()
    }

    /// Counts of wake-ups by lower-priority tasks, which another thread may read; none where they
    /// are not watched.
    pub(super) fn meter(&self) -> Option<WakerCounters> {
        self.wakes.meter()
    }

    /// A warning about incomplete observations that has not been reported yet.
    pub(super) fn problem(&mut self) -> Option<String> {
        self.tasks.as_mut()?.problem()
    }

    /// Observes the machine. Wake-ups that are `known` are left out.
    pub(super) fn observe(&mut self, known: impl Fn(&Wake) -> bool) -> Observation {
        self.wakes.receive(known);
        let (realtime, is_current) = self.realtime();
        let threads = self.threads.as_mut().map(InterruptThreads::list).unwrap_or_default();
        let unusual = self.threads.as_ref().map(InterruptThreads::unusual).unwrap_or_default();
        let unusual = unusual.to_vec();
        let tasks = realtime.as_deref().unwrap_or_default();
        let wakes = self.ready_wakes(tasks, is_current);
        self.wakes.mark_decided(&wakes, tasks);
        let (knobs, _) = knobs::read(&self.root, &self.knobs);
        let requests = self.requests.read();
        let at = clock::now();
        let starved = self.starvation.starved_cpus(at);
        Observation { at, realtime, knobs, threads, unusual, wakes, requests, starved }
    }

    /// The real-time tasks, and whether they were scanned just now; none where they don't matter.
    fn realtime(&mut self) -> (Option<Vec<RealTimeTask>>, bool) {
        let Some(tasks) = &mut self.tasks else { return (None, false) };
        for wake in self.wakes.pending() {
            tasks.expect(wake.task);
        }
        let (tasks, is_current) = tasks.update();
        (Some(tasks.to_vec()), is_current)
    }

    /// The wake-ups that can be decided upon: their tasks have been scanned, and their threads are
    /// old enough to have got their own policy.
    fn ready_wakes(&mut self, tasks: &[RealTimeTask], is_current: bool) -> Vec<Wake> {
        let threads = self.threads.as_ref();
        let is_young = |id: i32| threads.is_some_and(|threads| threads.is_young(id));
        self.wakes.take_ready(|wake| {
            let scanned = is_current || tasks.iter().any(|task| task.id == wake.task);
            scanned && !is_young(wake.thread) && !wake.behind.is_some_and(is_young)
        })
    }

    /// Waits until there may be something new to observe, at most `at_most` and at least `rest`.
    /// Only a real-time task that was reported, or a wake-up not reported before, ends the wait
    /// earlier.
    pub(super) fn wait(&mut self, at_most: Nanos, rest: Nanos, known: impl Fn(&Wake) -> bool) {
        let Some(tasks) = &mut self.tasks else {
            let time = Duration::from_nanos(at_most.max(rest).0);
            return std::thread::park_timeout(time);
        };
        let begin = clock::now();
        let mut deadline = begin + at_most.max(rest);
        if !self.wakes.pending().is_empty() {
            deadline = begin + at_most.min(PENDING_INTERVAL).max(rest);
        }
        loop {
            let left = deadline - clock::now();
            if left == Nanos(0) || tasks.wait(left, self.wakes.fd()) {
                return;
            }
            match self.wakes.receive(&known) {
                Received::New => return,
                Received::Known => {}
                // The next scan is only allowed later.
                Received::None if tasks.is_outdated() => {}
                // A request has interrupted the wait, or its time is up.
                Received::None | Received::Repeated => deadline = deadline.min(begin + rest),
            }
        }
    }
}

/// The real-time tasks, where mechanisms need them.
fn realtime_tasks(
    adaptation: &Adaptation,
    names: &[String],
    root: &Root,
) -> Result<Option<RealTimeTasks>> {
    let needing = adaptation.need_task_counts();
    if needing.is_empty() {
        return Ok(None);
    }
    RealTimeTasks::start(root).map(Some).map_err(|why| unsupported(names, &needing, &why))
}

/// The BPF program that reports wake-ups, where mechanisms need it.
fn wakers(adaptation: &Adaptation, names: &[String]) -> Result<Option<Wakers>> {
    let needing = adaptation.need_wakeups();
    if needing.is_empty() {
        return Ok(None);
    }
    Wakers::load().map(Some).map_err(|why| unsupported(names, &needing, &why))
}
