//! `latlab watch`: shows the loops of a running program that uses latlab-period.

use super::reserved::Reserved;
use super::worse;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::Machine;
use latlab_core::plan::{Length, Plan};
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_core::watch::{Foreign, MEMORY, WatchedLoop};
use latlab_format as format;
use latlab_format::watch::{self, Shown};
use latlab_format::width::Width;
use latlab_measure::explain::proc;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::root::Root;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::watched::{WatchedMemory, thread_usage};
use latlab_sys::{clock, machine};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  latlab watch 4711                            a table, updated every second
  latlab watch 4711 --once --json
  latlab watch 4711 --for 60s -o loop.json     then: latlab report loop.json";

/// Show how late the loops of a running program are that uses the library latlab-period
///
/// For each loop the table has the period, the cycles, those that ended after the next one was due
/// (overruns), the periods that were left out (missed), the page faults in the loop, the lateness
/// (from when a cycle was due until it started) and the running time (from its start until its
/// end). All values count from the first cycle. Reading them does not disturb the loop: it keeps
/// them in memory that this command reads.
///
/// It ends when the program does, after the time of --for, on Ctrl-C, or, without --out, when nobody
/// reads its output any more. It needs the rights of the program's user, or root. Programs without
/// the library are checked with latlab check --pid.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Watch {
    /// The process
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// Print the table once
    #[arg(long, conflicts_with = "length")]
    once: bool,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    length: Option<Nanos>,
    /// Print a line of JSON instead of each table; times are in nanoseconds
    #[arg(long)]
    json: bool,
    /// Write a record at the end, which latlab report shows
    #[arg(short = 'o', long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Time between two tables.
const PERIOD: Nanos = Nanos::from_secs(1);

impl Watch {
    pub(super) fn run(&self) -> Result<()> {
        let signals = Signals::block().context("signals can't be blocked")?;
        let mut process = Process::find(self.pid)?;
        let file = self.out.as_deref().map(Reserved::begin).transpose()?;
        let watched = self.watch(&mut process, &signals);
        // Data that were read before a failure are kept.
        let written = file.map_or(Ok(()), |file| file.write_record(&process.record()));
        worse(watched, written)
    }

    fn watch(&self, process: &mut Process, signals: &Signals) -> Result<()> {
        let end = self.length.map(|length| clock::now() + length);
        loop {
            let last = self.once || process.has_ended();
            process.update(last)?;
            self.show(&process.loops)?;
            let left = end.map_or(PERIOD, |end| (end - clock::now()).min(PERIOD));
            let is_useless = self.out.is_none() && format::is_unread();
            if last || is_useless || left == Nanos(0) || signals.wait(left) == Event::End {
                return Ok(());
            }
        }
    }

    fn show(&self, loops: &[Watched]) -> Result<()> {
        let shown: Vec<&Shown> = loops.iter().map(|one| &one.shown).collect();
        if self.json {
            return format::put(&watch::json(&shown));
        }
        let width = Width::of_stdout();
        if !self.once && io::stdout().is_terminal() {
            return format::put_styled(&watch::screen(&shown, width));
        }
        format::show(&watch::text(&shown, width))
    }
}

/// The process, which may start and end loops while it is watched.
struct Process {
    pid: u32,
    /// Tells it from a later process with the same number.
    started: Option<String>,
    loops: Vec<Watched>,
}

/// A loop, and its last reading.
struct Watched {
    memory: WatchedMemory,
    shown: Shown,
}

impl Process {
    fn find(pid: u32) -> Result<Process> {
        let started = proc::start_time(pid);
        if started.is_none() || proc::has_process_ended(pid, started.as_deref()) {
            return Err(Failure::failed(format!("there is no process {pid}")));
        }
        let mut process = Process { pid, started, loops: Vec::new() };
        process.update(false)?;
        if process.loops.is_empty() {
            return Err(Failure::failed(format!(
                "process {pid} has no loop of the library latlab-period: `latlab check --pid {pid}` \
                 checks the real-time threads of any program"
            )));
        }
        Ok(process)
    }

    fn has_ended(&self) -> bool {
        proc::has_process_ended(self.pid, self.started.as_deref())
    }

    /// Looks for new loops and reads all. Those that have ended keep their last values. Once the
    /// process has ended (`last`), it has no new ones.
    fn update(&mut self, last: bool) -> Result<()> {
        if !last || self.loops.is_empty() {
            self.add_new()?;
        }
        for one in &mut self.loops {
            if let Ok(seen) = WatchedLoop::read(&one.memory.read()) {
                one.shown.seen = seen;
            }
            if let Some((usage, cpu)) = thread_usage(self.pid, one.shown.seen.thread) {
                (one.shown.usage, one.shown.cpu) = (usage, cpu);
            }
        }
        Ok(())
    }

    fn add_new(&mut self) -> Result<()> {
        let found = match WatchedMemory::of_process(self.pid, MEMORY) {
            Ok(found) => found,
            // It has ended meanwhile.
            Err(_) if !self.loops.is_empty() && self.has_ended() => return Ok(()),
            Err(error) => return Err(refused(self.pid, &error)),
        };
        for (descriptor, memory) in found {
            let foreign = |why: &dyn std::fmt::Display| {
                let pid = self.pid;
                Failure::failed(format!(
                    "descriptor {descriptor} of process {pid} is named {MEMORY}, but has no statistics \
                     of a loop: {why}"
                ))
            };
            let memory = match memory {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(refused(self.pid, &e));
                }
                memory => memory.map_err(|e| foreign(&e))?,
            };
            if self.loops.iter().any(|known| known.memory.id() == memory.id()) {
                continue;
            }
            match WatchedLoop::read(&memory.read()) {
                Ok(seen) => self.loops.push(Watched { memory, shown: Shown::new(seen) }),
                Err(Foreign::Unfinished) => {}
                Err(why) => return Err(foreign(&why)),
            }
        }
        Ok(())
    }

    /// The record of all loops.
    fn record(&self) -> Record {
        const TOOL: &str = concat!("latlab ", env!("CARGO_PKG_VERSION"));
        let machine =
            Machine { clock_read_ns: clock::read_cost().0, ..machine::read(&Root::default()) };
        let shown = || self.loops.iter().map(|one| &one.shown);
        let cpus: CpuList = shown().map(|one| one.cpu).collect();
        let begun = shown().map(|one| one.seen.first).filter(|first| *first > Nanos(0));
        let length = clock::now() - begun.min().unwrap_or(clock::now());
        let plan = Plan::bare("native", cpus, Length::For(length));
        let series = shown().flat_map(|one| one.seen.series(one.usage, one.cpu)).collect();
        Record { series, ..Record::new(TOOL, clock::wall_clock() - length, plan, machine) }
    }
}

/// The failure to look at the descriptors of a process.
fn refused(pid: u32, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::unsupported(format!(
            "process {pid} belongs to another user or has more rights: run latlab watch as root"
        )),
        io::ErrorKind::NotFound => Failure::failed(format!("process {pid} has ended")),
        _ => failed(&format!("the descriptors of process {pid} can't be read"), error),
    }
}
