//! Waiting for a job array until all its tasks have ended, or the user asks for the end.

use crate::study::slurm::{ArrayState, ArrayTask, JobArray};
use latlab_core::time::Nanos;
use latlab_format::{self as format, live};
use latlab_part::progress::Watch;
use latlab_sys::clock;
use latlab_sys::signal::{Event, Signals};
use std::collections::BTreeMap;

/// Longest wait for the end of cancelled tasks.
const CANCEL_PATIENCE: Nanos = Nanos::from_secs(60);

/// Longest time without an answer of Slurm. A controller that restarts answers by then.
const SILENCE_PATIENCE: Nanos = Nanos::from_secs(600);

/// Asks Slurm for the state of an array, and shows its progress.
pub(super) struct ArrayMonitor<'a> {
    array: &'a JobArray,
    /// Number of tasks of the array.
    number: usize,
    watch: Box<dyn Watch>,
    began: Nanos,
    /// Number of tasks that have ended.
    ended: usize,
    /// Whether the remaining tasks were cancelled.
    cancelled: bool,
    /// Start of the time in which Slurm has not answered.
    silent_since: Option<Nanos>,
    /// Whether Slurm did not answer for too long.
    gave_up: bool,
    /// The tasks by their numbers, each in the state in which it was last seen: Slurm forgets those
    /// that have ended.
    tasks: BTreeMap<usize, ArrayTask>,
}

impl ArrayMonitor<'_> {
    pub(super) fn new(array: &JobArray, number: usize) -> ArrayMonitor<'_> {
        ArrayMonitor {
            array,
            number,
            watch: live::cells(number),
            began: clock::now(),
            ended: 0,
            cancelled: false,
            silent_since: None,
            gave_up: false,
            tasks: BTreeMap::new(),
        }
    }

    /// Waits until all tasks have ended. If the user asks for the end, the remaining tasks are
    /// cancelled and waited for a little. Returns the tasks as they were last seen.
    pub(super) fn wait_or_cancel(mut self, signals: &Signals) -> BTreeMap<usize, ArrayTask> {
        let mut deadline: Option<Nanos> = None;
        while !self.is_over() && deadline.is_none_or(|deadline| clock::now() < deadline) {
            if signals.wait(self.pause()) == Event::End && deadline.is_none() {
                deadline = Some(clock::now() + CANCEL_PATIENCE);
                self.cancel();
            }
        }
        self.watch.note("");
        self.tasks
    }

    /// Waits until all tasks have ended or the user asks for the end. The array then keeps running.
    /// Returns whether it is over.
    pub(super) fn wait_or_leave(mut self, signals: &Signals) -> bool {
        let mut interrupted = false;
        while !interrupted && !self.is_over() {
            interrupted = signals.wait(self.pause()) == Event::End;
        }
        self.watch.note("");
        !interrupted && !self.gave_up
    }

    fn cancel(&mut self) {
        self.watch.note("");
        self.cancelled = true;
        format::say(&match self.array.cancel() {
            Ok(()) => format!("array job {} is cancelled", self.array.job),
            Err(failure) => format!("array job {} is still running: {failure}", self.array.job),
        });
    }

    /// Asks Slurm. Returns whether all tasks have ended, or Slurm did not answer for too long.
    fn is_over(&mut self) -> bool {
        match self.array.state() {
            ArrayState::Tasks(tasks) => self.update(tasks),
            ArrayState::Forgotten => true,
            ArrayState::Unknown(why) => {
                self.watch.note(&format!("Slurm does not answer: {why}"));
                self.give_up_after_silence()
            }
        }
    }

    /// Takes over the state of the tasks, and shows it. Returns whether all have ended.
    fn update(&mut self, tasks: Vec<ArrayTask>) -> bool {
        self.silent_since = None;
        // Slurm forgets a task that is cancelled before it begins.
        let remaining = tasks.iter().filter(|task| !task.has_ended()).count();
        let ended = self.number.saturating_sub(remaining);
        if !self.cancelled {
            for nth in self.ended..ended {
                self.watch.done(nth + 1, self.number);
            }
        }
        self.ended = ended;
        self.watch.note(&self.progress(&tasks));
        self.tasks.extend(tasks.into_iter().map(|task| (task.number, task)));
        remaining == 0
    }

    fn give_up_after_silence(&mut self) -> bool {
        let since = *self.silent_since.get_or_insert_with(clock::now);
        self.gave_up = clock::now() > since + SILENCE_PATIENCE;
        if self.gave_up {
            let job = &self.array.job;
            format::say(&format!(
                "Slurm has not answered for {SILENCE_PATIENCE}: array job {job} may still be \
                 running; the same command waits for it, and scancel {job} ends it"
            ));
        }
        self.gave_up
    }

    /// The numbers of ended, running and pending tasks, and the reason of the pending ones.
    fn progress(&self, tasks: &[ArrayTask]) -> String {
        let count = |state: &str| tasks.iter().filter(|task| task.state == state).count();
        let pending = tasks.iter().find(|task| task.is_pending());
        let why = pending.map(|task| format!(" ({})", task.reason)).unwrap_or_default();
        let (ended, all) = (self.ended, self.number);
        let (running, pending) = (count("RUNNING"), count("PENDING"));
        format!("{ended} of {all} done; {running} running, {pending} pending{why}")
    }

    /// The time until Slurm is asked again: a tenth of the time that the array has taken so far,
    /// at least a second and at most half a minute.
    fn pause(&self) -> Nanos {
        let tenth = Nanos((clock::now() - self.began).0 / 10);
        tenth.clamp(Nanos::from_secs(1), Nanos::from_secs(30))
    }
}
