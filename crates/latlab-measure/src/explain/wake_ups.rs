//! Explaining the wake-ups of threads that are named while they run, one by one.

use super::summary::{circumstances, counted, names};
use super::{recorder_failed, start_recorder};
use crate::cause;
use latlab_bpf::{Detail, Recorder, Watch};
use latlab_check::WakeUp;
use latlab_core::explain::Window;
use latlab_core::explain::charge::Circumstances;
use latlab_core::explain::names::Names;
use latlab_core::machine::Machine;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use std::collections::BTreeSet;

/// Explains the wake-ups of the threads that it watches.
pub struct WakeUps {
    recorder: Recorder,
    circumstances: Circumstances,
    names: Names,
    threads: BTreeSet<u32>,
    /// Recorded wake-ups that have not been taken.
    windows: Vec<Window>,
}

impl WakeUps {
    /// Explains wake-ups after which a thread took at least `above` until it slept again.
    pub fn start(machine: &Machine, above: Nanos) -> Result<WakeUps> {
        let recorder = start_recorder(&Watch::Tasks(Vec::new()), above, Detail::Full)?;
        Ok(WakeUps {
            recorder,
            circumstances: circumstances(machine),
            names: names().0,
            threads: BTreeSet::new(),
            windows: Vec::new(),
        })
    }

    /// Watches one more thread.
    pub fn watch(&mut self, thread: u32) -> Result<()> {
        if self.threads.insert(thread) {
            self.recorder.watch(thread).map_err(recorder_failed)?;
        }
        Ok(())
    }

    /// A thread has ended. A later one may have its id.
    pub fn forget(&mut self, thread: u32) -> Result<()> {
        if self.threads.remove(&thread) {
            self.recorder.forget(thread).map_err(recorder_failed)?;
        }
        Ok(())
    }

    /// Changes the time from which on wake-ups are explained.
    pub fn set_above(&mut self, above: Nanos) -> Result<()> {
        if above == self.recorder.threshold() {
            return Ok(());
        }
        self.recorder.set_threshold(above).map_err(recorder_failed)
    }

    /// Reads some of the recorded wake-ups. Whether there are more.
    pub fn read(&mut self) -> Result<bool> {
        let windows = &mut self.windows;
        let mut take = |window: Window| windows.push(window);
        self.recorder.read(Nanos(0), &mut take).map_err(recorder_failed)
    }

    /// What was lost: a phrase for each kind.
    pub fn lost(&self) -> Vec<String> {
        let losses = self.recorder.losses();
        counted(&[
            (losses.windows + losses.unreadable, "late wake-ups were lost"),
            (
                losses.events_missed,
                "events were lost: their CPU was recording another one of the same kind",
            ),
            (
                losses.threads,
                "threads are left out: their ids differ from those of others by a multiple of 4096",
            ),
        ])
    }

    /// Explains the wake-ups that were read.
    pub fn take(&mut self) -> Vec<WakeUp> {
        let windows = std::mem::take(&mut self.windows);
        let reported = windows.iter().filter(|window| window.is_reported());
        let explained = reported.map(|window| {
            let explanation = cause::explain(window, &self.circumstances);
            WakeUp::of(window, &explanation, &self.names)
        });
        explained.collect()
    }
}
