//! A second task of a lane: who is switched to, preempted, waited for.

use super::Lane;
use super::meeting::Meeting;
use crate::failure::failed;
use latlab_sys::sched::{self, Policy};
use latlab_sys::{memory, signal};
use std::io;

/// A task that takes part in what a lane measures, on a thread of its own on the same CPUs.
pub(crate) struct Partner<'a> {
    meeting: &'a Meeting,
    place: usize,
}

impl Partner<'_> {
    /// Whether to go on. To be asked after each wait: a request to end interrupts them.
    #[inline]
    pub(crate) fn running(&self) -> bool {
        !self.meeting.is_stopped(self.place)
    }

    /// Waits with `wait`, which says whether it is through or was interrupted by a signal. False
    /// if the partner is to stop.
    #[inline]
    pub(crate) fn wait_for(&self, wait: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
        self.meeting.wait_for(self.place, wait)
    }
}

/// Ends a lane's partners, however the lane ends.
struct Ending<'a>(&'a Meeting, usize);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.stop(self.1);
        // Who watches interrupts what the partners wait for.
        signal::tell();
    }
}

impl Lane<'_> {
    /// Measures with `body` while `partner` runs on another thread, bound to the same CPUs and
    /// with this policy. The partner goes on until it is told to stop, which it is when `body`
    /// returns; whatever it sleeps in is interrupted then. A partner that fails ends the probe.
    ///
    /// More partners are had by nesting.
    pub(crate) fn beside(
        &mut self,
        policy: Policy,
        partner: impl FnOnce(&Partner<'_>) -> io::Result<()> + Send,
        body: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let (meeting, place) = (self.meeting, self.place());
        std::thread::scope(|scope| {
            let life = move || {
                let _helping = meeting.help(place);
                memory::touch_stack();
                let lived =
                    sched::set_policy(policy).and_then(|()| partner(&Partner { meeting, place }));
                // A wait that was interrupted on request is no failure.
                if let Err(error) = lived
                    && !meeting.is_stopped(place)
                {
                    meeting.fail(failed("a task that takes part", error));
                }
            };
            let _ending = Ending(meeting, place);
            let thread = std::thread::Builder::new().name("partner".to_owned());
            thread.stack_size(512 * 1024).spawn_scoped(scope, life)?;
            body(self)
        })
    }
}
