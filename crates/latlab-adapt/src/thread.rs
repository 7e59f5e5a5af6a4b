//! The adaptation thread, in which mechanisms work while the program does something else.

use super::adapter::{Adapted, Adapter, DaemonLinks};
use super::log_thread::Logger;
use super::reporter::Reporter;
use latlab_bpf::wakers::WakerCounters;
use latlab_mechanism::configuration::Configuration;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::root::Root;
use latlab_sys::{clock, signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};

/// The running adaptation thread. Dropping it ends the thread, which restores everything.
#[derive(Debug)]
pub struct Adapting {
    thread: Option<JoinHandle<Adapted>>,
    flags: Arc<Flags>,
}

#[derive(Debug, Default)]
struct Flags {
    /// The thread is to end.
    stop: AtomicBool,
    /// The thread has ended.
    ended: AtomicBool,
    /// Its changes are not worth a message: the daemon could not start.
    abandoned: AtomicBool,
}

impl Adapting {
    /// Starts the mechanisms called `names`, which work until [`Adapting::end`]. Their first
    /// decisions are applied before this returns.
    pub fn start(names: &[String]) -> Result<Adapting> {
        let configuration = Configuration::default();
        Adapting::with(names, &configuration, DaemonLinks::default(), Logger::disabled())
            .map(|(adapting, _)| adapting)
    }

    /// Like [`Adapting::start`], for a daemon. Also returns the counts of wake-ups by
    /// lower-priority tasks, where they are watched.
    pub(super) fn with(
        names: &[String],
        configuration: &Configuration,
        links: DaemonLinks,
        logger: Logger,
    ) -> Result<(Adapting, Option<WakerCounters>)> {
        let reporter = Reporter::new(logger);
        let adapter = Adapter::start(names, configuration, links, Root::default(), reporter)?;
        let meter = adapter.meter();
        let flags = Arc::new(Flags::default());
        let shared = Arc::clone(&flags);
        let thread = Builder::new()
            .name("adapt".to_owned())
            .spawn(move || report_end(&shared, || run(adapter, &shared)))
            .context("the adaptation thread")?;
        Ok((Adapting { thread: Some(thread), flags }, meter))
    }

    /// Whether the thread still runs. If it ends by itself, the main thread's wait for signals
    /// ends.
    pub(super) fn is_running(&self) -> bool {
        !self.flags.ended.load(Relaxed)
    }

    /// Ends the thread, which restores everything, and returns what it had changed.
    pub fn end(mut self) -> Adapted {
        self.join()
    }

    /// Ends the thread after this failure, and adds to it that not everything could be restored.
    pub(super) fn abandon(self, failure: Failure) -> Failure {
        self.flags.abandoned.store(true, Relaxed);
        let unrestored = (!self.end().complete).then(|| "what mechanisms have changed".to_owned());
        failure.with_unrestored(Failure::not_restored(unrestored.as_slice()))
    }

    fn join(&mut self) -> Adapted {
        self.flags.stop.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return Adapted::default() };
        thread.thread().unpark();
        // A thread that panicked has restored everything, too.
        thread.join().unwrap_or_default()
    }
}

impl Drop for Adapting {
    fn drop(&mut self) {
        self.join();
    }
}

/// Calls `work`, and reports its end even if it panics.
fn report_end<T>(flags: &Flags, work: impl FnOnce() -> T) -> T {
    let _at_end = SetEnded(flags);
    work()
}

struct SetEnded<'a>(&'a Flags);

impl Drop for SetEnded<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Relaxed);
        if !self.0.stop.load(Relaxed) {
            signal::notify();
        }
    }
}

fn run(mut adapter: Adapter, flags: &Flags) -> Adapted {
    let logger = adapter.reporter().logger().clone();
    adapter.run_in_this_thread();
    let began = clock::now();
    while !flags.stop.load(Relaxed) {
        adapter.wait();
        if !flags.stop.load(Relaxed) {
            adapter.step();
        }
    }
    let (cpu, time) = (clock::thread_cpu_time(), clock::now() - began);
    let result = adapter.finish();
    if !flags.abandoned.load(Relaxed) {
        logger.log(&format!("adapting took {cpu} of CPU time in {time}"));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_sys::signal::Signals;

    #[test]
    fn end_is_reported_even_after_panic() {
        // Otherwise the signal that reports it would kill this process.
        let _signals = Signals::block().unwrap();
        let ends = |asked: bool| {
            let flags = Arc::new(Flags { stop: AtomicBool::new(asked), ..Flags::default() });
            let shared = Arc::clone(&flags);
            let work = move || report_end(&shared, || assert!(asked, "this test's own panic"));
            let panicked = std::thread::spawn(work).join().is_err();
            assert!(panicked != asked && flags.ended.load(Relaxed));
        };
        ends(true);
        ends(false);
    }
}
