//! The running loads: one worker process per CPU, or one per load.

use super::Placed;
use super::context::Orders;
use crate::worker;
use latlab_core::cpulist::CpuList;
use latlab_core::record::{Warning, WarningCode, Work};
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::process::Worker;
use latlab_sys::signal::{Event, Signals};

/// All running loads. Dropping it ends them.
pub struct Loads(Vec<Workers>);

/// The workers of one load.
struct Workers {
    name: String,
    unit: &'static str,
    processes: Vec<Worker>,
}

impl Loads {
    /// Starts all loads and waits until each worker is ready.
    pub fn start(loads: &[Placed], seed: u64, signals: &Signals) -> Result<Loads> {
        let mut started = Loads(Vec::new());
        for (index, load) in (0..).zip(loads) {
            started.0.push(Workers::start(load, seed ^ (index << 32))?);
        }
        started.wait_until_ready(signals)?;
        Ok(started)
    }

    fn wait_until_ready(&mut self, signals: &Signals) -> Result<()> {
        for load in &mut self.0 {
            for worker in &mut load.processes {
                wait_for(worker, &load.name, signals)?;
            }
        }
        Ok(())
    }

    /// Stops all loads. Returns their work, and a warning for each worker that ended too early or
    /// that could not be ended.
    pub fn stop(mut self) -> (Vec<Work>, Vec<Warning>) {
        let mut warnings = Vec::new();
        Worker::stop(self.0.iter_mut().flat_map(|load| &mut load.processes).collect());
        let work = self.0.iter_mut().map(|load| load.work(&mut warnings)).collect();
        (work, warnings)
    }
}

/// Waits until a worker is ready.
fn wait_for(worker: &mut Worker, name: &str, signals: &Signals) -> Result<()> {
    let limit = worker.patience(Nanos::from_secs(20));
    while !worker.progress().is_ready() {
        if !worker.is_alive() {
            return Err(Failure::failed(failure_message(worker)));
        }
        if limit.is_over() {
            return Err(Failure::failed(format!("{name}: it was not ready within 20 s")));
        }
        if signals.wait(Nanos::from_millis(1)) == Event::End {
            return Err(Failure::cut_short("ended before anything was measured"));
        }
    }
    Ok(())
}

/// The last line that a worker wrote to stderr, without latlab's own name.
fn failure_message(worker: &mut Worker) -> String {
    worker.failure_message().trim_start_matches("latlab: ").to_owned()
}

impl Workers {
    fn start(load: &Placed, seed: u64) -> Result<Workers> {
        let mut started =
            Workers { name: load.name().to_owned(), unit: load.load.unit(), processes: Vec::new() };
        for (index, cpus) in (0..).zip(load.workers()) {
            started.processes.push(worker(load, seed.wrapping_add(index), cpus)?);
        }
        Ok(started)
    }

    /// What its workers did, now that they are stopped.
    fn work(&mut self, warnings: &mut Vec<Warning>) -> Work {
        let (mut done, mut cpu_ns) = (0, Nanos(0));
        for worker in &mut self.processes {
            if worker.ended_by_itself() {
                let why = failure_message(worker);
                let text = format!("the load {} ended before the run did: {why}", self.name);
                warnings.push(Warning::new(WarningCode::LoadEnded, text));
            }
            let used = worker.cpu_time();
            if used.is_none() {
                let text = format!(
                    "a worker of the load {} had not ended 2 s after it was killed: it may wait in \
                     the kernel, for example for a disk that does not answer; its CPU time is not \
                     counted",
                    self.name
                );
                warnings.push(Warning::new(WarningCode::LoadStuck, text));
            }
            cpu_ns = cpu_ns + used.unwrap_or(Nanos(0));
            done += worker.progress().done();
        }
        Work { load: self.name.clone(), unit: self.unit.to_owned(), done, cpu_ns }
    }
}

fn worker(load: &Placed, seed: u64, cpus: CpuList) -> Result<Worker> {
    let part = load.load.part.clone();
    let orders = |shared| {
        let parent = std::process::id();
        let orders = Orders { part, seed, cpus, shared, parent };
        let orders = serde_json::to_string(&orders).expect("orders are plain data");
        vec![worker::LOAD.to_owned(), orders]
    };
    let started = Worker::start(orders);
    started.context(&format!("{}: a worker could not be started", load.name()))
}
