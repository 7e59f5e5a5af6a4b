//! How long the kernel counts the runs of BPF programs.

use latlab_core::time::Nanos;
use latlab_sys::{bpf, clock};
use std::fs::File;
use std::io;

/// The kernel counts while this is open, and for a second at most: it reads the clock twice for each
/// run, which is as much as many a run takes.
#[derive(Debug)]
pub(crate) struct Counting {
    since: Nanos,
    open: io::Result<Option<File>>,
    counted: Nanos,
}

const LENGTH: Nanos = Nanos::from_secs(1);

impl Counting {
    pub(crate) fn begin() -> Counting {
        let open = bpf::count_runs().map(Some);
        Counting { since: clock::now(), open, counted: Nanos(0) }
    }

    /// Counts for a second more, from now on.
    pub(crate) fn again(&mut self) {
        let counted = self.counted();
        *self = Counting { counted, ..Counting::begin() };
    }

    /// Ends the counting in its time, and says when it does. Once only: the kernel interrupts every
    /// CPU for that.
    pub(crate) fn end_in_time(&mut self) -> bool {
        let ends = matches!(self.open, Ok(Some(_))) && clock::now() - self.since >= LENGTH;
        if ends {
            self.counted = self.counted();
            self.open = Ok(None);
        }
        ends
    }

    /// How long ago it began last.
    pub(crate) fn age(&self) -> Nanos {
        clock::now() - self.since
    }

    /// For how long runs were counted.
    pub(crate) fn counted(&self) -> Nanos {
        match self.open {
            Ok(Some(_)) => self.counted + (clock::now() - self.since),
            _ => self.counted,
        }
    }

    pub(crate) fn refused(&self) -> Option<&io::Error> {
        self.open.as_ref().err()
    }
}
