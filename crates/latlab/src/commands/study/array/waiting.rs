//! Waiting for an array until it is over, or the user wants the end of it.

use crate::format::{self, live};
use crate::rig::Watch;
use crate::slurm::{Array, Seen, Task};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::signal::{Event, Signals};
use std::collections::BTreeMap;

/// An array that is waited for.
pub(super) struct Waiting<'a> {
    array: &'a Array,
    watch: Box<dyn Watch>,
    began: Nanos,
    number: usize,
    /// How many tasks are over.
    done: usize,
    /// Whether the others are cancelled.
    cancelled: bool,
    /// Whether Slurm was silent for too long.
    gave_up: bool,
    /// Each task as it was last seen: Slurm forgets those that have ended.
    tasks: BTreeMap<usize, Task>,
    /// Since when Slurm has said nothing.
    silent: Option<Nanos>,
}

impl Waiting<'_> {
    /// Of this many tasks.
    pub(super) fn of(array: &Array, number: usize) -> Waiting<'_> {
        let (watch, began) = (live::cells(number), clock::now());
        let (tasks, gave_up) = (BTreeMap::new(), false);
        let (done, cancelled, silent) = (0, false, None);
        Waiting { array, watch, began, number, done, cancelled, gave_up, tasks, silent }
    }

    /// Waits until all tasks have ended, or the user wants the end: then those that have not are
    /// cancelled, and waited for a little. Each task as it was last seen.
    pub(super) fn until_the_end(mut self, signals: &Signals) -> BTreeMap<usize, Task> {
        const PATIENCE: Nanos = Nanos::from_secs(60);
        let mut until: Option<Nanos> = None;
        while !self.look() && until.is_none_or(|until| clock::now() < until) {
            if signals.wait(self.pace()) == Event::End && until.is_none() {
                until = Some(clock::now() + PATIENCE);
                self.watch.note("");
                self.cancelled = true;
                format::say(&match self.array.cancel() {
                    Ok(()) => format!("array job {} is cancelled", self.array.job),
                    Err(failure) => format!("array job {} goes on: {failure}", self.array.job),
                });
            }
        }
        self.watch.note("");
        self.tasks
    }

    /// Waits until all tasks have ended, or the user does not want to wait: the array goes on then.
    /// Whether it is over.
    pub(super) fn looking_on(mut self, signals: &Signals) -> bool {
        let mut asked = false;
        while !asked && !self.look() {
            asked = signals.wait(self.pace()) == Event::End;
        }
        self.watch.note("");
        !asked && !self.gave_up
    }

    /// Asks Slurm. Whether all is over.
    fn look(&mut self) -> bool {
        /// A controller that is started anew is back by then.
        const PATIENCE: Nanos = Nanos::from_secs(600);
        let tasks = match self.array.look() {
            Seen::Tasks(tasks) => tasks,
            Seen::Forgotten => return true,
            Seen::Silence(why) => {
                let since = *self.silent.get_or_insert_with(clock::now);
                self.watch.note(&format!("Slurm does not answer: {why}"));
                self.gave_up = clock::now() > since + PATIENCE;
                if self.gave_up {
                    let job = &self.array.job;
                    format::say(&format!(
                        "Slurm has not answered for {PATIENCE}: array job {job} may go on; the same \
                         command waits for it, and scancel {job} ends it"
                    ));
                }
                return self.gave_up;
            }
        };
        self.silent = None;
        // One that is cancelled before it begins is gone at once.
        let to_come = tasks.iter().filter(|task| !task.has_ended()).count();
        let done = self.number.saturating_sub(to_come);
        let over = if self.cancelled { 0..0 } else { self.done..done };
        for nth in over {
            self.watch.done(nth + 1, self.number);
        }
        self.done = done;
        self.watch.note(&self.state(&tasks));
        self.tasks.extend(tasks.into_iter().map(|task| (task.number, task)));
        to_come == 0
    }

    /// In a few words, what goes on.
    fn state(&self, tasks: &[Task]) -> String {
        let of = |state: &str| tasks.iter().filter(|task| task.state == state).count();
        let waiting = tasks.iter().find(|task| task.state == "PENDING");
        let why = waiting.map(|task| format!(" ({})", task.reason)).unwrap_or_default();
        let (done, all) = (self.done, self.number);
        format!("{done} of {all} done; {} running, {} waiting{why}", of("RUNNING"), of("PENDING"))
    }

    /// Slurm is asked the less often the longer it takes.
    fn pace(&self) -> Nanos {
        let tenth = Nanos((clock::now() - self.began).0 / 10);
        tenth.clamp(Nanos::from_secs(1), Nanos::from_secs(30))
    }
}
