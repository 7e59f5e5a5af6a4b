//! Counting real-time tasks: the kernel says when one may have come or gone, /proc which there are.

use latlab_core::cpulist::CpuList;
use latlab_core::mechanism::RealTimeTask;
use latlab_core::time::Nanos;
use latlab_sys::comings::{self, Comings, Deaf};
use latlab_sys::root::Root;
use latlab_sys::{clock, cpu, process};
use std::os::fd::BorrowedFd;

/// The real-time tasks of programs, as far as it was looked.
#[derive(Debug)]
pub(super) struct Counting {
    root: Root,
    comings: Comings,
    /// The CPUs on which something is heard.
    cpus: CpuList,
    /// When it was looked last whether those are all.
    checked: Nanos,
    /// Why not on those that have come, and whether that was said.
    deaf: Option<(String, bool)>,
    /// What hearing costs all tasks, until that was said.
    costly: Option<String>,
    /// Whether something was heard that was not looked after.
    heard: bool,
    tasks: Vec<RealTimeTask>,
    looked: Nanos,
    cost: Nanos,
}

/// How often it is looked without anything heard, with and without real-time tasks: what nobody
/// heard of, and who is still on the way out when it is heard, are found then.
const CHECK: Nanos = Nanos::from_millis(250);
const CHECK_NONE: Nanos = Nanos::from_secs(1);
/// How often it is looked which CPUs there are.
const CHECK_CPUS: Nanos = Nanos::from_secs(1);
/// Of so much time, one part may go into looking: while nothing is heard, and at most.
const SHARE: u64 = 100;
const MOST: u64 = 10;

impl Counting {
    /// Looks for the first time.
    pub(super) fn start(root: &Root) -> Result<Counting, Deaf> {
        // Up to four on each CPU. Where there can't be more, it is said at the first one that can't be
        // had.
        let _ = process::allow_many_files();
        let (root, cpus) = (root.clone(), cpu::online(root));
        let comings = Comings::listen(&root, &cpus)?;
        let costly = costly(&comings);
        let (none, tasks, checked) = (Nanos(0), Vec::new(), clock::now());
        let (looked, cost, heard, deaf) = (none, none, true, None);
        let mut counting =
            Counting { root, comings, cpus, checked, deaf, costly, heard, tasks, looked, cost };
        counting.look();
        Ok(counting)
    }

    /// Hears on other CPUs, where others are there than a second ago: on one that goes, what listens
    /// ends, even if it comes back.
    fn follow_cpus(&mut self) {
        let now = clock::now();
        if now < self.checked + CHECK_CPUS {
            return;
        }
        self.checked = now;
        let cpus = cpu::online(&self.root);
        if cpus == self.cpus {
            return;
        }
        match Comings::listen(&self.root, &cpus) {
            Ok(comings) => {
                // What is so since the beginning has been said.
                if self.comings.slows_calls().is_none() {
                    self.costly = costly(&comings);
                }
                (self.comings, self.cpus, self.heard) = (comings, cpus, true);
                self.deaf = None;
            }
            // It stays as it was, and is tried again.
            Err(why) if cpus == cpu::online(&self.root) => {
                let told = self.deaf.as_ref().is_some_and(|(_, told)| *told);
                let late = format!("real-time tasks are seen up to {CHECK_NONE} late on new CPUs");
                self.deaf = Some((format!("{late} (now there are {cpus}): {why}"), told));
            }
            // One went meanwhile.
            Err(_) => {}
        }
    }

    /// What hearing costs all tasks, or why tasks are not heard of on CPUs that have come, where that
    /// has not been said.
    pub(super) fn complaint(&mut self) -> Option<String> {
        if let Some(costly) = self.costly.take() {
            return Some(costly);
        }
        let (why, told) = self.deaf.as_mut()?;
        (!std::mem::replace(told, true)).then(|| why.clone())
    }

    /// Them, looked up if they may have changed, and whether they were.
    pub(super) fn tasks(&mut self) -> (&[RealTimeTask], bool) {
        self.follow_cpus();
        let since = clock::now() - self.looked;
        let check = if self.tasks.is_empty() { CHECK_NONE } else { CHECK };
        let due = since >= check.max(Nanos(self.cost.0 * SHARE));
        let looks = due || (self.heard && since >= self.pause());
        if looks {
            self.look();
        }
        (&self.tasks, looks)
    }

    /// Has it looked for this task, if it is not among those that are known.
    pub(super) fn hear_of(&mut self, task: i32) {
        self.heard |= self.tasks.iter().all(|known| known.id != task);
    }

    /// Waits until there may be something to look up, or `other` can be read, at most so long.
    /// Whether there is something to look up now.
    pub(super) fn wait(&mut self, at_most: Nanos, other: Option<BorrowedFd<'_>>) -> bool {
        let rest = |counting: &Counting| counting.pause() - (clock::now() - counting.looked);
        if self.heard {
            // Tasks come and go faster than they can be looked up.
            comings::wait_for(other, rest(self).min(at_most));
        } else {
            self.heard = self.comings.wait(at_most, other);
        }
        self.heard && rest(self) == Nanos(0)
    }

    /// Whether something was heard that is looked up later, or now.
    pub(super) fn has_heard(&self) -> bool {
        self.heard
    }

    /// The least time between two looks.
    fn pause(&self) -> Nanos {
        Nanos(self.cost.0 * MOST)
    }

    fn look(&mut self) {
        let begin = clock::now();
        // What is heard from now on may not be in what is read.
        self.heard = false;
        if let Ok(tasks) = comings::realtime() {
            self.tasks = tasks;
        }
        self.looked = clock::now();
        self.cost = self.looked - begin;
    }
}

/// What hearing costs all tasks, if it does.
fn costly(comings: &Comings) -> Option<String> {
    let slow = "all system calls take a little longer while policies are heard of";
    comings.slows_calls().map(|why| format!("{slow}: {why}"))
}
