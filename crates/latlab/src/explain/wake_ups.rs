//! Explaining the wake-ups of threads that are named while they run, one by one.

use super::summary::{circumstances, names};
use super::{recorder_failed, start_recorder};
use crate::cause;
use crate::failure::Result;
use latlab_bpf::{Recorder, Watch};
use latlab_core::check::WakeUp;
use latlab_core::explain::Window;
use latlab_core::explain::charge::Circumstances;
use latlab_core::explain::names::Names;
use latlab_core::machine::Machine;
use latlab_core::time::Nanos;
use std::collections::BTreeSet;

/// Explains the wake-ups of the threads that it watches.
pub(crate) struct WakeUps {
    recorder: Recorder,
    circumstances: Circumstances,
    names: Names,
    threads: BTreeSet<u32>,
    /// Recorded wake-ups that have not been taken.
    windows: Vec<Window>,
}

impl WakeUps {
    /// Explains wake-ups after which a thread took at least `above` until it slept again.
    pub(crate) fn start(machine: &Machine, above: Nanos) -> Result<WakeUps> {
        let recorder = start_recorder(&Watch::Tasks(Vec::new()), above)?;
        Ok(WakeUps {
            recorder,
            circumstances: circumstances(machine),
            names: names().0,
            threads: BTreeSet::new(),
            windows: Vec::new(),
        })
    }

    /// Watches one more thread.
    pub(crate) fn watch(&mut self, thread: u32) -> Result<()> {
        if self.threads.insert(thread) {
            self.recorder.watch(thread).map_err(recorder_failed)?;
        }
        Ok(())
    }

    /// Changes the time from which on wake-ups are explained.
    pub(crate) fn set_above(&mut self, above: Nanos) -> Result<()> {
        if above == self.recorder.threshold() {
            return Ok(());
        }
        self.recorder.set_threshold(above).map_err(recorder_failed)
    }

    /// Reads some of the recorded wake-ups. Whether there are more.
    pub(crate) fn read(&mut self) -> Result<bool> {
        let windows = &mut self.windows;
        let mut take = |window: Window| windows.push(window);
        self.recorder.read(Nanos(0), &mut take).map_err(recorder_failed)
    }

    /// Number of late wake-ups that were lost.
    pub(crate) fn lost(&self) -> u64 {
        let losses = self.recorder.losses();
        losses.windows + losses.unreadable
    }

    /// Explains the wake-ups that were read.
    pub(crate) fn take(&mut self) -> Vec<WakeUp> {
        let windows = std::mem::take(&mut self.windows);
        let reported = windows.iter().filter(|window| window.is_reported());
        let explained = reported.map(|window| {
            let explanation = cause::explain(window, &self.circumstances);
            WakeUp::of(window, &explanation, &self.names)
        });
        explained.collect()
    }
}
