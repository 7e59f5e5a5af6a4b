//! Loads: what competes with a probe, each in processes of its own that die with us.

mod caps_lock;
mod console;
mod console_switch;
mod cpu;
mod disk;
mod download;
mod exec;
mod exit;
mod fork;
mod hackbench;
mod interrupts;
mod io;
mod ipi;
mod memory;
mod netbench;
mod network;
mod page_cache;
mod ping;
mod procfs;
mod realfeel;
mod room;
mod wilshire_disk;

use crate::failure::{Failure, Result, failed};
use crate::needs::Needs;
use crate::registry::{self, About, Entry, Params};
use latlab_core::cpulist::CpuList;
use latlab_core::machine::Machine;
use latlab_core::plan::Part;
use latlab_core::record::{Warning, Work};
use latlab_core::time::Nanos;
use latlab_sys::process::{self, Forked, SingleThread, Worker};
use latlab_sys::shared::SharedPage;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::{clock, cpu as affinity, signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Every load, in the order `latlab list loads` shows them.
pub(crate) static LOADS: &[Entry<dyn AnyLoad>] = &[
    entry::<cpu::Cpu>(),
    entry::<memory::Memory>(),
    entry::<disk::Disk>(),
    entry::<fork::Fork>(),
    entry::<procfs::Procfs>(),
    entry::<hackbench::Hackbench>(),
    entry::<netbench::Netbench>(),
    entry::<realfeel::Realfeel>(),
    entry::<caps_lock::CapsLock>(),
    entry::<console_switch::ConsoleSwitch>(),
    entry::<io::Io>(),
    entry::<wilshire_disk::WilshireDisk>(),
    entry::<page_cache::PageCache>(),
    entry::<ping::Ping>(),
    entry::<download::Download>(),
    entry::<exec::Exec>(),
    entry::<exit::Exit>(),
    entry::<interrupts::Interrupts>(),
    entry::<ipi::Ipi>(),
];

/// A stressor: something that competes with the probe.
pub(crate) trait Load: Params {
    const ABOUT: About;
    /// What its work is counted in.
    const UNIT: &'static str;
    /// Whether one worker serves the whole machine, with children of its own, rather than one
    /// worker on each CPU.
    const ONE_WORKER: bool = false;
    /// On how many CPUs it has an effect at all.
    const LEAST_CPUS: usize = 1;
    /// What of the machine it changes again and again: the guard gives that back.
    const CHANGES: &'static [&'static str] = &[];

    /// Where it is to run.
    fn place(&self) -> &Place;

    /// What it needs beyond a kernel.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// What its work is counted in, where that is not always the same.
    fn unit(&self) -> &'static str {
        Self::UNIT
    }

    /// Refuses what can't work here with this many workers, before anything starts.
    fn check(&self, _workers: u64) -> Result<()> {
        Ok(())
    }

    /// Works until it is told to stop. This runs in a process of its own.
    fn work(&self, bench: &Bench) -> std::io::Result<()>;
}

/// A [`Load`] whose type has been erased, as the table holds it.
pub(crate) trait AnyLoad: Send + Sync {
    fn unit(&self) -> &'static str;
    fn one_worker(&self) -> bool;
    fn least_cpus(&self) -> usize;
    fn changes(&self) -> &'static [&'static str];
    fn place(&self) -> &Place;
    fn needs(&self) -> Needs;
    fn check(&self, workers: u64) -> Result<()>;
    fn work(&self, bench: &Bench) -> std::io::Result<()>;
}

/// What a load needs.
pub(crate) fn needs(load: &Part) -> Result<Needs> {
    registry::build("load", LOADS, load).map(|load| load.needs())
}

/// What of the machine a load changes, to be given back by the guard.
pub(crate) fn changes(load: &Part) -> Result<&'static [&'static str]> {
    registry::build("load", LOADS, load).map(|load| load.changes())
}

impl<L: Load> AnyLoad for L {
    fn unit(&self) -> &'static str {
        Load::unit(self)
    }
    fn one_worker(&self) -> bool {
        L::ONE_WORKER
    }
    fn least_cpus(&self) -> usize {
        L::LEAST_CPUS
    }
    fn changes(&self) -> &'static [&'static str] {
        L::CHANGES
    }
    fn place(&self) -> &Place {
        Load::place(self)
    }
    fn needs(&self) -> Needs {
        Load::needs(self)
    }
    fn check(&self, workers: u64) -> Result<()> {
        Load::check(self, workers)
    }
    fn work(&self, bench: &Bench) -> std::io::Result<()> {
        Load::work(self, bench)
    }
}

const fn entry<L: Load>() -> Entry<dyn AnyLoad> {
    Entry {
        about: L::ABOUT,
        keys: registry::keys::<L>,
        read: registry::read::<L>,
        build: |params| Ok(Box::new(serde_json::from_value::<L>(Value::Object(params))?)),
    }
}

/// Where a load runs.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Where: on all CPUs, on those the probe measures, on their hardware siblings, on the others
    #[arg(long, default_value = "all")]
    on: On,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum On {
    All,
    Probe,
    Sibling,
    Others,
}

impl Place {
    /// The CPUs of `machine` that are meant while `probed` are under test.
    fn cpus(&self, load: &str, probed: &CpuList, machine: &Machine) -> Result<CpuList> {
        let siblings = || {
            let of_probed = probed.iter().filter_map(|cpu| machine.siblings.get(&cpu));
            of_probed.flat_map(CpuList::iter).collect::<CpuList>().minus(probed)
        };
        let (cpus, which) = match self.on {
            On::All => (machine.cpus.clone(), "online CPU"),
            On::Probe => (probed.clone(), "CPU under test"),
            On::Sibling => (siblings(), "hardware sibling of them"),
            On::Others => (machine.cpus.minus(probed), "CPU that is not under test"),
        };
        if cpus.is_empty() {
            let online = &machine.cpus;
            return Err(Failure::Unsupported(format!(
                "{load}: the probe measures on CPU {probed} of {online}, and there is no {which}: \
                 choose other --cpus, or another on="
            )));
        }
        Ok(cpus)
    }
}

/// What a worker process has: counters, a seed, and the word when to stop.
pub(crate) struct Bench {
    progress: SharedPage,
    /// Different for each worker, the same in each run with the same `--seed`.
    pub(crate) seed: u64,
    single: SingleThread,
}

impl Bench {
    /// Says that all is set up; the probes wait for this.
    pub(crate) fn ready(&self) {
        self.progress.set_ready();
    }

    /// Whether to go on.
    #[expect(clippy::unused_self, reason = "only a worker may ask")]
    pub(crate) fn running(&self) -> bool {
        !signal::terminated()
    }

    /// Counts work done.
    pub(crate) fn done(&self, units: u64) {
        self.progress.add(units);
    }

    /// Leaves the work to children, which go on until they are ended: fails where one has ended by
    /// itself.
    pub(crate) fn leave_to(&self, children: Vec<Forked>) -> std::io::Result<()> {
        self.ready();
        let mut at_work = Ok(());
        while at_work.is_ok() && self.running() {
            clock::sleep_for(Nanos::from_millis(100));
            at_work = process::all_at_work();
        }
        process::end_all(children);
        at_work
    }

    /// The right to fork: a worker has one thread.
    pub(crate) fn single(&self) -> &SingleThread {
        &self.single
    }
}

/// A worker's orders, as it gets them on its command line.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    part: Part,
    seed: u64,
    cpus: CpuList,
    /// The descriptor of the page it shares with us.
    shared: i32,
    /// The process that gives the orders.
    parent: u32,
}

/// What a worker process does, from its orders to its end.
pub(crate) fn serve(orders: &str) -> Result<()> {
    let broken = |e: &dyn std::fmt::Display| Failure::Failed(format!("a worker's orders: {e}"));
    let orders: Orders = serde_json::from_str(orders).map_err(|e| broken(&e))?;
    // The kernel forgets the wish when it starts a program with capabilities of its own.
    process::die_with(orders.parent).map_err(|e| broken(&e))?;
    // It is a copy of us, and would be called as the link by which it was started.
    process::call_itself(&orders.part.name).map_err(|e| broken(&e))?;
    let load = registry::build("load", LOADS, &orders.part)?;
    let progress = SharedPage::inherited(orders.shared).map_err(|e| broken(&e))?;
    signal::note_termination().map_err(|e| broken(&e))?;
    affinity::pin(&orders.cpus).map_err(|e| failed(&orders.part.name, e))?;
    let single = SingleThread::prove().ok_or_else(|| broken(&"more than one thread"))?;
    let bench = Bench { progress, seed: orders.seed, single };
    load.work(&bench).map_err(|e| failed(&orders.part.name, e))
}

/// Refuses a load that can't work here, before anything starts.
pub(crate) fn check(part: &Part, probed: &CpuList, machine: &Machine) -> Result<()> {
    checked(part, probed, machine).map(drop)
}

/// A load that can work here, and its CPUs.
fn checked(
    part: &Part,
    probed: &CpuList,
    machine: &Machine,
) -> Result<(Box<dyn AnyLoad>, CpuList)> {
    let load = registry::build("load", LOADS, part)?;
    let cpus = load.place().cpus(&part.name, probed, machine)?;
    let least = load.least_cpus();
    if cpus.len() < least {
        return Err(Failure::Unsupported(format!(
            "{}: it needs {least} CPUs, and is to run on CPU {cpus}: choose another on=, or a machine \
             or a profile with more (cpus = {least})",
            part.name
        )));
    }
    load.check(if load.one_worker() { 1 } else { cpus.len() as u64 })?;
    Ok((load, cpus))
}

/// All loads of a run at work. Dropping it ends them.
pub(crate) struct Crew(Vec<Team>);

/// The workers of one load.
struct Team {
    name: String,
    unit: &'static str,
    workers: Vec<Worker>,
}

impl Crew {
    /// Checks all loads, then starts all of them and waits until each is at work.
    pub(crate) fn start(
        parts: &[Part],
        probed: &CpuList,
        machine: &Machine,
        seed: u64,
        signals: &Signals,
    ) -> Result<Crew> {
        let mut ready = Vec::new();
        for part in parts {
            let (load, cpus) = checked(part, probed, machine)?;
            ready.push((part, load, cpus));
        }
        let mut crew = Crew(Vec::new());
        for (nth, (part, load, cpus)) in (0..).zip(ready) {
            crew.0.push(Team::start(part, load.as_ref(), &cpus, seed ^ (nth << 32))?);
        }
        crew.wait_until_ready(signals)?;
        Ok(crew)
    }

    fn wait_until_ready(&mut self, signals: &Signals) -> Result<()> {
        const PATIENCE: Nanos = Nanos::from_secs(20);
        let deadline = clock::now() + PATIENCE;
        for team in &mut self.0 {
            for worker in &mut team.workers {
                while !worker.progress().is_ready() {
                    if !worker.is_alive() {
                        let words = worker.last_words();
                        return Err(Failure::Failed(
                            words.trim_start_matches("latlab: ").to_owned(),
                        ));
                    }
                    if clock::now() > deadline {
                        let why =
                            format!("{}: it did not begin to work within {PATIENCE}", team.name);
                        return Err(Failure::Failed(why));
                    }
                    if signals.wait(Nanos::from_millis(1)) == Event::End {
                        let why = "ended before anything was measured";
                        return Err(Failure::Failed(why.to_owned()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends all loads. What they did, and which of them ended before they were told to.
    pub(crate) fn stop(mut self) -> (Vec<Work>, Vec<Warning>) {
        let mut warnings = Vec::new();
        for worker in self.0.iter_mut().flat_map(|team| &mut team.workers) {
            worker.ask_to_stop();
        }
        let work = self.0.iter_mut().map(|team| team.stop(&mut warnings)).collect();
        (work, warnings)
    }
}

impl Team {
    fn start(part: &Part, load: &dyn AnyLoad, cpus: &CpuList, seed: u64) -> Result<Team> {
        let places: Vec<CpuList> = if load.one_worker() {
            vec![cpus.clone()]
        } else {
            cpus.iter().map(|cpu| CpuList::from_iter([cpu])).collect()
        };
        let mut team = Team { name: part.name.clone(), unit: load.unit(), workers: Vec::new() };
        for (nth, cpus) in (0..).zip(places) {
            let seed = seed.wrapping_add(nth);
            let orders = |shared| {
                let parent = std::process::id();
                let orders = Orders { part: part.clone(), seed, cpus, shared, parent };
                let orders = serde_json::to_string(&orders).expect("orders are plain data");
                vec!["load-worker".to_owned(), orders]
            };
            let worker = Worker::start(orders)
                .map_err(|e| failed(&format!("{}: a worker could not be started", part.name), e))?;
            team.workers.push(worker);
        }
        Ok(team)
    }

    fn stop(&mut self, warnings: &mut Vec<Warning>) -> Work {
        let (mut done, mut cpu_ns) = (0, Nanos(0));
        for worker in &mut self.workers {
            if worker.ended_by_itself() {
                let words = worker.last_words();
                let words = words.trim_start_matches("latlab: ");
                let text = format!("the load {} ended before the run did: {words}", self.name);
                warnings.push(Warning::new("load-ended", text));
            }
            cpu_ns = cpu_ns + worker.stop();
            done += worker.progress().done();
        }
        Work { load: self.name.clone(), unit: self.unit.to_owned(), done, cpu_ns }
    }
}
