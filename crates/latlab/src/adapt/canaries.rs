//! Ordinary threads, one on each CPU, that ask to run ten times a second: where one does not get
//! to, ordinary tasks starve.

use crate::failure::{Result, failed};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::cpu::Binding;
use latlab_sys::root::Root;
use latlab_sys::{clock, cpu};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};

const PERIOD: Nanos = Nanos::from_millis(100);

/// When the canary of each CPU ran last.
#[derive(Debug, Default)]
pub(super) struct Ran(Vec<(u32, AtomicU64)>);

impl Ran {
    pub(super) fn list(&self) -> Vec<(u32, Nanos)> {
        self.0.iter().map(|(cpu, ran)| (*cpu, Nanos(ran.load(Relaxed)))).collect()
    }
}

/// The threads. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Canaries {
    pub(super) ran: Arc<Ran>,
    threads: Vec<JoinHandle<()>>,
    ending: Arc<AtomicBool>,
}

impl Canaries {
    /// Starts one on each CPU. To be called by an ordinary thread: they are of its policy.
    pub(super) fn start(root: &Root) -> Result<Canaries> {
        let now = clock::now().0;
        let ran = cpu::online(root).iter().map(|cpu| (cpu, AtomicU64::new(now))).collect();
        let (ran, ending) = (Arc::new(Ran(ran)), Arc::new(AtomicBool::new(false)));
        let mut canaries = Canaries { ran, threads: Vec::new(), ending };
        for nth in 0..canaries.ran.0.len() {
            let (ran, ending) = (Arc::clone(&canaries.ran), Arc::clone(&canaries.ending));
            let thread = Builder::new().name("canary".to_owned());
            let thread = thread.spawn(move || sing(&ran.0[nth], &ending));
            canaries.threads.push(thread.map_err(|e| failed("the threads that watch CPUs", e))?);
        }
        Ok(canaries)
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        self.ending.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn sing((cpu, ran): &(u32, AtomicU64), ending: &AtomicBool) {
    // One that can't be bound says of some CPU that ordinary tasks run there.
    let _ = Binding::to(&CpuList::from_iter([*cpu])).take();
    while !ending.load(Relaxed) {
        ran.store(clock::now().0, Relaxed);
        std::thread::park_timeout(std::time::Duration::from_nanos(PERIOD.0));
    }
}
