//! The per-CPU starvation watchdog. On each CPU a SCHED_OTHER thread wakes up ten times a second:
//! where it does not run, ordinary tasks starve.

use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_mechanism::watchdog::Watchdog;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::cpu::Affinity;
use latlab_sys::root::Root;
use latlab_sys::{clock, cpu};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};

const PERIOD: Nanos = Nanos::from_millis(100);

/// Time of the last heartbeat of each CPU.
#[derive(Debug, Default)]
pub(super) struct LastHeartbeats(Vec<(u32, AtomicU64)>);

impl LastHeartbeats {
    fn list(&self) -> Vec<(u32, Nanos)> {
        self.0.iter().map(|(cpu, last)| (*cpu, Nanos(last.load(Relaxed)))).collect()
    }
}

/// Detects CPUs without heartbeats.
#[derive(Debug, Default)]
pub(super) struct StarvationDetector {
    heartbeats: Arc<LastHeartbeats>,
    watchdog: Watchdog,
}

impl StarvationDetector {
    /// The CPUs on which ordinary tasks starve at time `at`. Empty without heartbeat threads.
    pub(super) fn starved_cpus(&mut self, at: Nanos) -> Vec<u32> {
        self.watchdog.look(at, &self.heartbeats.list())
    }
}

/// The heartbeat threads. Dropping it ends them.
#[derive(Debug)]
pub(super) struct HeartbeatThreads {
    heartbeats: Arc<LastHeartbeats>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl HeartbeatThreads {
    /// Starts one thread on each online CPU. The threads inherit the scheduling policy of the
    /// caller, which has to be SCHED_OTHER.
    pub(super) fn start(root: &Root) -> Result<HeartbeatThreads> {
        let now = clock::now().0;
        let cpus = cpu::online(root);
        if cpus.is_empty() {
            let why =
                "the starvation watchdog can't start: /sys/devices/system/cpu/online can't be read";
            return Err(Failure::failed(why));
        }
        let last = cpus.iter().map(|cpu| (cpu, AtomicU64::new(now))).collect();
        let (heartbeats, stop) = (Arc::new(LastHeartbeats(last)), Arc::default());
        let mut all = HeartbeatThreads { heartbeats, threads: Vec::new(), stop };
        for index in 0..all.heartbeats.0.len() {
            let (heartbeats, stop) = (Arc::clone(&all.heartbeats), Arc::clone(&all.stop));
            let thread = Builder::new().name("heartbeat".to_owned());
            let thread = thread.spawn(move || beat(&heartbeats.0[index], &stop));
            all.threads.push(thread.context("the starvation watchdog")?);
        }
        Ok(all)
    }

    /// A detector that watches these threads.
    pub(super) fn detector(&self) -> StarvationDetector {
        let heartbeats = Arc::clone(&self.heartbeats);
        StarvationDetector { heartbeats, watchdog: Watchdog::default() }
    }
}

impl Drop for HeartbeatThreads {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn beat((cpu, last): &(u32, AtomicU64), stop: &AtomicBool) {
    // A thread that can't be bound to its CPU still shows that ordinary tasks run on some CPU.
    let _ = Affinity::to(&CpuList::from_iter([*cpu])).take();
    while !stop.load(Relaxed) {
        last.store(clock::now().0, Relaxed);
        std::thread::park_timeout(std::time::Duration::from_nanos(PERIOD.0));
    }
}
