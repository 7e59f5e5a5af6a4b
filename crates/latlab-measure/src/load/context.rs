//! The worker process of a load: its orders, and the context in which the load works.

use super::LOADS;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::Part;
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::part;
use latlab_sys::process::{self, Forked, SingleThread};
use latlab_sys::shared::SharedPage;
use latlab_sys::{clock, cpu as affinity, signal};
use serde::{Deserialize, Serialize};
use std::io;

/// A worker's orders, an argument of its command line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) part: Part,
    pub(super) seed: u64,
    pub(super) cpus: CpuList,
    /// The file descriptor of the page shared with the parent.
    pub(super) shared: i32,
    /// The process that gives the orders.
    pub(super) parent: u32,
}

/// Context of a worker process: its counter, its seed, and the request to stop.
pub struct LoadContext {
    pub(super) progress: SharedPage,
    /// Different for each worker; the same in each run with the same `--seed`.
    pub seed: u64,
    single: SingleThread,
}

impl LoadContext {
    /// Reports that everything is set up; the probes wait for this.
    pub fn ready(&self) {
        self.progress.set_ready();
    }

    /// Reports that the load has started, if it has `settled`.
    pub fn ready_if(&self, settled: bool) {
        if settled {
            self.ready();
        }
    }

    /// Whether to continue.
    pub fn running(&self) -> bool {
        !signal::termination_requested()
    }

    /// Counts work.
    pub fn done(&self, units: u64) {
        self.progress.add(units);
    }

    /// Leaves the work to children until the worker is told to stop, then ends them. Fails where a
    /// child has ended by itself.
    pub fn leave_to(&self, children: Vec<Forked>) -> io::Result<()> {
        self.ready();
        let mut at_work = Ok(());
        while at_work.is_ok() && self.running() {
            clock::sleep_for(Nanos::from_millis(100));
            at_work = process::check_all_running();
        }
        process::kill_all(children);
        at_work
    }

    /// The right to fork: a worker has one thread.
    pub fn single(&self) -> &SingleThread {
        &self.single
    }
}

/// Runs a worker process: `latlab load-worker ORDERS`.
pub fn serve(orders: &str) -> Result<()> {
    let broken = |e: &dyn std::fmt::Display| Failure::failed(format!("a worker's orders: {e}"));
    let orders: Orders = serde_json::from_str(orders).map_err(|e| broken(&e))?;
    // The kernel resets this when it executes a program with file capabilities.
    process::die_with_parent(orders.parent).map_err(|e| broken(&e))?;
    // Explanations name tasks: without this it would be the link by which the process was started.
    process::set_thread_name(&format!("load:{}", orders.part.name)).map_err(|e| broken(&e))?;
    let load = part::build("load", LOADS, &orders.part)?;
    let progress = SharedPage::inherited(orders.shared).map_err(|e| broken(&e))?;
    signal::record_termination().map_err(|e| broken(&e))?;
    affinity::pin(&orders.cpus).context(&orders.part.name)?;
    let single = SingleThread::prove().ok_or_else(|| broken(&"more than one thread"))?;
    let context = LoadContext { progress, seed: orders.seed, single };
    load.work(&context).context(&orders.part.name)
}
