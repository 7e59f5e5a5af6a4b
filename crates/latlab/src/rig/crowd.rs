//! Tasks that want to run on a lane's CPUs all the time, and have to wait for it.

use super::Lane;
use super::meeting::Meeting;
use crate::failure::failed;
use latlab_core::time::Nanos;
use latlab_sys::{clock, sched};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::{Builder, Scope};

/// So many tasks, and whether they are still wanted.
#[derive(Default)]
struct Crowd {
    there: AtomicU32,
    over: AtomicBool,
}

/// Sends a crowd home, however the lane ends.
struct Ending<'a>(&'a Crowd);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
    }
}

impl Lane<'_> {
    /// Measures with `body` among so many tasks that compute on the same CPUs, as ordinary ones.
    /// They are as nice as can be: what watches this may have to run there, too.
    pub(crate) fn among(
        &mut self,
        tasks: u32,
        body: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let (meeting, place, crowd) = (self.meeting, self.place(), Crowd::default());
        std::thread::scope(|scope| {
            let _ending = Ending(&crowd);
            (0..tasks).try_for_each(|_| crowd.add(scope, meeting))?;
            crowd.gather(tasks, || meeting.is_stopped(place))?;
            body(self)
        })
    }
}

impl Crowd {
    fn add<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        meeting: &'scope Meeting,
    ) -> io::Result<()> {
        let thread = Builder::new().name("runnable".to_owned()).stack_size(64 * 1024);
        thread.spawn_scoped(scope, || self.join(meeting)).map(drop)
    }

    /// The life of one of them. It begins with the policy of the lane: so all are there as soon as
    /// the lane sleeps, and none has to wait for its turn among the others first.
    fn join(&self, meeting: &Meeting) {
        self.there.fetch_add(1, Relaxed);
        if let Err(error) = sched::stand_back() {
            return meeting.fail(failed("a task that is to be runnable", error));
        }
        while !self.over.load(Relaxed) {
            std::hint::spin_loop();
        }
    }

    /// Waits until all are there, or nobody wants them any more.
    fn gather(&self, tasks: u32, is_stopped: impl Fn() -> bool) -> io::Result<()> {
        const PATIENCE: Nanos = Nanos::from_secs(20);
        let deadline = clock::now() + PATIENCE;
        while self.there.load(Relaxed) < tasks && !is_stopped() {
            if clock::now() > deadline {
                let why = format!("of {tasks} tasks not all ran within {PATIENCE}");
                return Err(io::Error::other(why));
            }
            clock::sleep_for(Nanos::from_millis(1));
        }
        Ok(())
    }
}
