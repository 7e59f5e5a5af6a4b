//! Counting real-time tasks: the kernel says when one may have come or gone, /proc how many there
//! are.

use crate::failure::{Failure, Result};
use latlab_core::mechanism::RealTimeTask;
use latlab_core::time::Nanos;
use latlab_sys::comings::{self, Comings};
use latlab_sys::root::Root;
use latlab_sys::{clock, cpu};

/// How many real-time tasks of programs there are, as far as it was looked.
#[derive(Debug)]
pub(super) struct Counting {
    comings: Comings,
    /// Whether something was heard that was not looked after.
    heard: bool,
    count: u64,
    looked: Nanos,
    cost: Nanos,
}

/// How often it is looked without anything heard, with and without real-time tasks: what nobody
/// heard of, and who is still on the way out when it is heard, are found then.
const CHECK: Nanos = Nanos::from_millis(250);
const CHECK_NONE: Nanos = Nanos::from_secs(1);
/// Of so much time, one part may go into looking: while nothing is heard, and at most.
const SHARE: u64 = 100;
const MOST: u64 = 10;

impl Counting {
    /// Counts for the first time. Refused where nothing can be heard.
    pub(super) fn start(root: &Root) -> Result<Counting> {
        let comings = Comings::listen(root, &cpu::online(root)).map_err(|deaf| {
            Failure::Unsupported(format!("mode: {deaf}; or leave mode out of --mechanisms"))
        })?;
        let none = Nanos(0);
        let mut counting = Counting { comings, heard: true, count: 0, looked: none, cost: none };
        counting.look();
        Ok(counting)
    }

    /// How many there are, looked up if it may have changed.
    pub(super) fn count(&mut self) -> u64 {
        let (since, check) =
            (clock::now() - self.looked, if self.count > 0 { CHECK } else { CHECK_NONE });
        let due = since >= check.max(Nanos(self.cost.0 * SHARE));
        if due || (self.heard && since >= self.pause()) {
            self.look();
        }
        self.count
    }

    /// Them, as far as it was looked.
    pub(super) fn tasks(&mut self) -> Vec<RealTimeTask> {
        let task = |_| RealTimeTask { id: 0, process: 0, name: String::new(), priority: 1 };
        (0..self.count()).map(task).collect()
    }

    /// Waits until there may be something to count, at most so long.
    pub(super) fn wait(&mut self, at_most: Nanos) {
        let since = clock::now() - self.looked;
        if self.heard {
            // Tasks come and go faster than they can be counted.
            clock::sleep_for((self.pause() - since).min(at_most));
        } else {
            self.heard = self.comings.wait(at_most);
        }
    }

    /// The least time between two looks.
    fn pause(&self) -> Nanos {
        Nanos(self.cost.0 * MOST)
    }

    fn look(&mut self) {
        let begin = clock::now();
        // What is heard from now on may not be in what is read.
        self.heard = false;
        self.count = comings::count().unwrap_or(self.count);
        self.looked = clock::now();
        self.cost = self.looked - begin;
    }
}
