//! Counting of the runs of BPF programs (`BPF_ENABLE_STATS`), limited in time.

use latlab_core::time::Nanos;
use latlab_sys::{bpf, clock};
use std::fs::File;
use std::io;

/// The kernel counts runs while the file is open, for `length` at most. Counting reads the clock
/// twice for each run, which takes as long as many of the runs.
#[derive(Debug)]
pub(crate) struct Counting {
    since: Nanos,
    length: Nanos,
    open: io::Result<Option<File>>,
    counted: Nanos,
}

impl Counting {
    pub(crate) fn begin(length: Nanos) -> Counting {
        let open = bpf::count_runs().map(Some);
        Counting { since: clock::now(), length, open, counted: Nanos(0) }
    }

    /// Counts again from now on.
    pub(crate) fn restart(&mut self) {
        let counted = self.counted();
        *self = Counting { counted, ..Counting::begin(self.length) };
    }

    /// Ends the counting after its length, and returns whether it ended now. This happens once: the
    /// kernel interrupts every CPU for it.
    pub(crate) fn end_if_due(&mut self) -> bool {
        let ends = matches!(self.open, Ok(Some(_))) && clock::now() - self.since >= self.length;
        if ends {
            self.counted = self.counted();
            self.open = Ok(None);
        }
        ends
    }

    /// Time since counting was last started.
    pub(crate) fn age(&self) -> Nanos {
        clock::now() - self.since
    }

    /// Total time for which runs were counted.
    pub(crate) fn counted(&self) -> Nanos {
        match self.open {
            Ok(Some(_)) => self.counted + (clock::now() - self.since),
            _ => self.counted,
        }
    }

    /// Why runs are not counted, if they are not.
    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.open.as_ref().err()
    }
}
