//! Session: everything that targets need to carry out plans, apart from the plans.

use crate::engine::{Outcome, Prepared};
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::progress::{Progress, Stream, Watch};
use latlab_sys::signal::{Event, Signals};
use std::io;

/// Carries out a plan on the machine that latlab runs on.
pub type RunHere = fn(&Prepared, &Signals, &mut dyn Watch) -> Result<Outcome>;

/// Receives the output of a program on a target.
pub type Output<'a> = dyn FnMut(Stream, &[u8]) -> Result<()> + 'a;

/// Output of a program on a target, collected up to a limit.
pub struct Collected {
    bytes: Vec<u8>,
    most: u64,
}

impl Collected {
    /// No output yet, and room for this many bytes.
    pub fn at_most(most: u64) -> Collected {
        Collected { bytes: Vec::new(), most }
    }

    /// Adds output. An error of the kind `InvalidData` for more than there is room for.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        if (self.bytes.len() + bytes.len()) as u64 > self.most {
            let why = "it sent more output than any report has";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The output.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Receives each outcome with a record as soon as it is complete, with the index of its plan.
pub type Keep<'a> = dyn FnMut(usize, &Outcome) + 'a;

/// Accelerator of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Accel {
    /// Hardware virtualization by KVM.
    Kvm,
    /// Translation by QEMU (Tiny Code Generator).
    Tcg,
}

/// Everything that a target needs in addition to plans. None of it changes a record.
pub struct Session<'a> {
    /// Carries out a plan on this machine.
    pub here: RunHere,
    /// Requests to end.
    pub signals: &'a Signals,
    /// Shows the progress of measuring.
    pub watch: &'a mut dyn Watch,
    /// Shows the progress of fetching and building kernels.
    pub progress: &'a mut dyn Progress,
    /// Receives outcomes before all are complete.
    pub keep: Option<&'a mut Keep<'a>>,
    /// Number of guests that may run at the same time.
    pub jobs: usize,
    /// Whether to ignore cached answers.
    pub fresh: bool,
    /// Whether guests boot, although they could be restored from a snapshot.
    pub cold: bool,
    /// The accelerator that the user chose.
    pub accel: Option<Accel>,
    /// Time that a plan or a program may take; each target has its own default.
    pub limit: Option<Limit>,
    /// Whether the user has asked to end: nothing new is started.
    pub ended: bool,
}

/// The time that a plan or a program on another machine may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Wall-clock time: what the user asked for.
    WallClock(Nanos),
    /// The same without the time in which QEMU waits for a CPU of this machine, which may be busy.
    Usual(Nanos),
}

impl Limit {
    /// The time, of whichever kind.
    pub fn length(self) -> Nanos {
        let (Limit::WallClock(length) | Limit::Usual(length)) = self;
        length
    }
}

impl Session<'_> {
    /// Waits for at most this time. Whether a request to end arrived meanwhile.
    pub fn pause(&mut self, at_most: Nanos) -> bool {
        let asked = self.signals.wait(at_most) == Event::End;
        self.ended |= asked;
        asked
    }

    /// Hands on the outcome of the plan with this index. A record that the user ended early is the
    /// last one.
    pub fn finished(&mut self, index: usize, outcome: &Result<Outcome>) {
        let Ok(outcome) = outcome else { return };
        self.ended |= outcome.record.cut_short().is_some();
        if let Some(keep) = &mut self.keep {
            keep(index, outcome);
        }
    }

    /// Refuses to start anything on `target` once the user has asked to end.
    pub fn check_not_ended(&self, target: &str) -> Result<()> {
        if self.ended {
            return Err(Failure::cut_short(format!("{target}: ended before it was started")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_beyond_the_limit_is_refused() {
        let mut output = Collected::at_most(5);
        assert!(output.add(b"abc").is_ok() && output.add(b"de").is_ok() && output.add(b"").is_ok());
        let error = output.add(b"f").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "it sent more output than any report has");
        assert_eq!(output.bytes(), b"abcde");
    }
}
