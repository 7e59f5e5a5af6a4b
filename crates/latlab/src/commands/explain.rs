//! `latlab explain`: why wake-ups were late.

use super::run::Run;
use super::scan::Scan;
use crate::failure::{Failure, Result};
use latlab_core::plan::{ExplainPlan, Plan, Watched};
use latlab_core::time::Nanos;

const EXAMPLES: &str = "\
Examples:
  latlab explain --load hackbench --load disk     why does a real-time task wake late here?
  latlab explain --rt --for 1min                  what keeps the tasks waiting that run already?
  latlab explain --on lab:standard --load procfs  every instruction of it, on a kernel in QEMU
  latlab explain --on lab:standard scan populate:4MiB";

/// Explain why wake-ups were late
///
/// Measures as `latlab run` does, and says of each wake-up that was late what the CPU did from when
/// the task should have run until it ran: parts that add up to the latency, each with its cause,
/// the task and the kernel's function, and what is left. Without a probe it is `cyclic`. Or it
/// watches tasks that are there already: one, all of a name, or all of real-time priority.
///
/// It needs root, or the capabilities for BPF and for performance monitoring, and a kernel with BTF,
/// as distributions build them: programs on the kernel's tracepoints note what happens while it
/// measures, and are gone when it ends. What that costs is in the record.
///
/// In the laboratory (`--on lab:PROFILE`) the run is made twice. It is the same both times, but for
/// the second time every instruction of its worst samples is watched from outside of the guest: the
/// path from the timer's expiry to the program, function by function, and who held interrupts or
/// preemption off. That takes no time of the guest's own. A scan is explained likewise: its longest
/// regions get the name of a function.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Explain {
    /// Wake-ups that took longer are explained [default: one of a thousand, the worst; of tasks that
    /// are watched, the 5000 worst]
    #[arg(long, value_name = "TIME")]
    above: Option<Nanos>,
    /// Watch this process and all its threads, or this thread
    #[arg(long, value_name = "PID", group = "watched", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Watch all tasks of this name
    #[arg(long, value_name = "NAME", group = "watched", value_parser = name)]
    comm: Option<String>,
    /// Watch all tasks of real-time priority but the kernel's own
    #[arg(long, group = "watched")]
    rt: bool,
    /// In the laboratory, trace within the guest as on any machine, rather than from outside
    #[arg(long)]
    traced: bool,
    #[command(flatten)]
    run: Run,
    #[command(subcommand)]
    what: Option<What>,
}

/// What is explained instead of probes.
#[derive(Debug, clap::Subcommand)]
enum What {
    Scan(Scan),
}

/// The kernel keeps fifteen bytes of a name, and whoever gives more would wait for nobody.
fn name(text: &str) -> std::result::Result<String, String> {
    match text.len() {
        0 => Err("it is empty".to_owned()),
        1..=15 => Ok(text.to_owned()),
        _ => Err(format!("'{text}' is too long: the kernel keeps 15 bytes of a name")),
    }
}

impl Explain {
    pub(super) fn run(&self) -> Result<()> {
        match &self.what {
            None => self.run.measurement().explain(&self.plan()?),
            Some(What::Scan(scan)) => {
                self.refuse_beside_a_scan()?;
                scan.explain(self.run.only_where()?)
            }
        }
    }

    fn refuse_beside_a_scan(&self) -> Result<()> {
        let given = [
            ("--above", self.above.is_some()),
            ("--pid", self.pid.is_some()),
            ("--comm", self.comm.is_some()),
            ("--rt", self.rt),
            ("--traced", self.traced),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::Failed(format!("{option} is nothing for a scan"))),
            None => Ok(()),
        }
    }

    fn plan(&self) -> Result<Plan> {
        let watch = match (self.pid, &self.comm) {
            (Some(pid), _) => Some(Watched::Task(pid)),
            (None, Some(name)) => Some(Watched::Name(name.clone())),
            (None, None) => self.rt.then_some(Watched::Realtime),
        };
        if watch.is_some() && self.run.names_probes() {
            let why = "explain either watches tasks that are there (--pid, --comm, --rt) or runs \
                       probes of its own: leave out one of the two";
            return Err(Failure::Failed(why.to_owned()));
        }
        let mut plan = self.run.plan()?;
        if watch.is_some() {
            plan.probes.clear();
        }
        let explain = ExplainPlan { above: self.above, watch, traced: self.traced };
        Ok(Plan { explain: Some(explain), ..plan })
    }
}
