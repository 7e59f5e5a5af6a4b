//! `latlab explain`: finds the causes of late wake-ups.

mod always;
mod file;
pub(super) mod proof;

use super::rights;
use super::run::Run;
use super::scan::Scan;
use latlab_core::plan::{ExplainPlan, Plan, Watched};
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_measure::explain;
use latlab_part::failure::{Failure, Result};
use latlab_sys::capabilities::Purpose;
use std::path::Path;

pub(super) const EXAMPLES: &str = "\
Examples:
  latlab explain --load hackbench --load disk     explain late wake-ups of a probe under load
  latlab explain --rt --for 1min                  explain late wake-ups of all real-time programs
  latlab explain --on lab:standard --load procfs  trace the worst samples on a kernel in QEMU
  latlab explain --prove --load hackbench         try what may help against the causes, and measure
  latlab explain --always --out late/             record late wake-ups of real-time tasks for weeks
  latlab explain trace.dat --comm motor           explain a trace of trace-cmd, ftrace or perf
  latlab explain --on lab:standard scan populate:4MiB";

/// Explain why wake-ups were late
///
/// Measures as `latlab run` does. Each late wake-up is split into segments, from when the task
/// should have run until it ran. Each segment has a cause and a culprit: a task, interrupt, softirq
/// or kernel function. Segments and an unexplained rest add up to the latency. The default probe is
/// `cyclic`. With --pid, --comm or --rt it watches existing tasks instead of running a probe.
///
/// For a watched thread that never sleeps it shows what took the CPU from it: interrupts, softirqs,
/// other tasks, throttling, the host; with --running, for all watched threads. For a busy loop
/// (`latlab explain noise`) it shows the same, gap by gap.
///
/// The output begins with the leading causes and what to do against each on this machine. The table
/// of causes and the time lines of the worst three wake-ups follow; --verbose prints the rest.
///
/// It needs root, or the capabilities CAP_BPF and CAP_PERFMON
/// (`setcap cap_sys_nice,cap_ipc_lock,cap_bpf,cap_perfmon+ep`), and a kernel with BTF
/// (/sys/kernel/btf/vmlinux). BPF programs on tracepoints record events while it measures, and are
/// removed at the end. The record states their overhead.
///
/// In the laboratory (`--on lab:PROFILE`) it repeats the run, and QEMU traces every instruction of
/// the worst samples: the functions from timer expiry to the program, and those that disabled
/// interrupts or preemption. Tracing takes no guest time. `latlab explain scan` repeats a scan and
/// names the function behind each of its longest sections. With --verify it also traces with BPF
/// inside the guest, compares the causes with the instructions of the same wake-ups, and fails where
/// they disagree.
///
/// With a file it explains the trace that another tool has recorded: trace.dat and perf.data (with trace-cmd and
/// perf), the text of ftrace, trace-cmd report and perf script, the traces of rtla timerlat and of ftrace's latency
/// tracers, and perf sched timehist. Without --pid, --comm or --rt it explains real-time tasks or, if none wakes up,
/// all. The output says which events are missing and what that costs: docs/files.md.
///
/// With --prove it then tries what can be changed at once against the leading causes: settings of
/// the kernel, the priority of the probe, the place of the loads, and mechanisms of latlab adapt. It
/// measures without and with each change, in turns, without tracing, and compares the worst sample
/// and the highest quantile with enough samples as latlab ab does: after 6, 8 and 10 turns, in the
/// laboratory 6 with different seeds. It says which changes helped and by how much, which showed no
/// effect, and how to keep those that helped. Each change is undone after each run, also if latlab
/// is killed. What needs a reboot is named, not tried.
///
/// Exit codes: 0 success, also of --always when it is ended; 1 --stop-above ended the run, or a
/// sample exceeded --fail-above; 2 failure; 3 this machine lacks something, or --prove can try
/// nothing; 4 it was ended early (Ctrl-C), and the record has what was measured; from a guest
/// (lab:, vm:) there is none.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct Explain {
    /// Explain wake-ups later than this [default: the worst 0.1 % of a probe's samples, at least 10;
    /// of watched tasks at least the 5000 longest; 100us with --always]
    #[arg(long, value_name = "TIME")]
    above: Option<Nanos>,
    /// Watch this process with all its threads, or this thread
    #[arg(long, value_name = "PID", group = "watched", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Watch all tasks with this name
    #[arg(long, value_name = "NAME", group = "watched", value_parser = task_name)]
    comm: Option<String>,
    /// Watch all real-time tasks except kernel threads
    #[arg(long, group = "watched")]
    rt: bool,
    /// Explain what took the CPU from the watched threads, whether they sleep or not; of a thread that
    /// never sleeps it is explained anyway
    #[arg(long, requires = "watched", conflicts_with = "always")]
    running: bool,
    /// In the laboratory, trace with BPF inside the guest instead of from QEMU
    #[arg(long)]
    traced: bool,
    /// In the laboratory, trace with BPF and from QEMU, and fail where the two disagree by more than 1 us
    #[arg(long, conflicts_with_all = ["pid", "comm", "rt", "prove", "always", "traced"])]
    verify: bool,
    /// Try remedies against the leading causes, and measure in turns which of them help
    #[arg(long, conflicts_with_all = ["pid", "comm", "rt"])]
    prove: bool,
    /// Watch tasks until Ctrl-C, with a line and a record (--out FOLDER) for each late wake-up
    #[arg(long, conflicts_with_all = ["prove", "traced", "verbose"])]
    always: bool,
    /// With --always, size of the records in the folder of --out, above which the oldest are removed
    #[arg(long, value_name = "SIZE", default_value = "64MiB", requires = "always")]
    keep: Bytes,
    /// Print everything: all time lines and segments, the distributions, the overhead of tracing
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    run: Run,
    #[command(subcommand)]
    subject: Option<Subject>,
}

/// Subject of the explanation other than a probe's samples.
#[derive(Debug, clap::Subcommand)]
enum Subject {
    Scan(Scan),
}

/// Reads the name of a task. The kernel stores 15 bytes of it, so that a longer one matches no
/// task.
fn task_name(text: &str) -> std::result::Result<String, String> {
    match text.len() {
        0 => Err("it is empty".to_owned()),
        1..=15 => Ok(text.to_owned()),
        _ => Err(format!("'{text}' is too long: the kernel stores 15 bytes of a task's name")),
    }
}

impl Explain {
    pub(super) fn run(&self) -> Result<()> {
        if self.subject.is_none()
            && let Some(path) = self.run.trace()?
        {
            return self.trace(path);
        }
        match &self.subject {
            None if self.always => self.always(),
            None if self.prove => self.run.measurement().prove(&self.plan()?, self.verbose),
            None => self.run.measurement().explain(&self.plan()?, self.verbose),
            Some(Subject::Scan(scan)) => {
                self.refuse_options_for_scan()?;
                scan.explain(self.run.only_measurement()?)
            }
        }
    }

    fn refuse_options_for_scan(&self) -> Result<()> {
        let given = [
            ("--above", self.above.is_some()),
            ("--pid", self.pid.is_some()),
            ("--comm", self.comm.is_some()),
            ("--rt", self.rt),
            ("--running", self.running),
            ("--traced", self.traced),
            ("--verify", self.verify),
            ("--prove", self.prove),
            ("--always", self.always),
            ("--verbose", self.verbose),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::failed(format!("{option} does not apply to a scan"))),
            None => Ok(()),
        }
    }

    /// Explains the late wake-ups of a trace.
    fn trace(&self, path: &Path) -> Result<()> {
        let live = [
            ("--running", self.running),
            ("--traced", self.traced),
            ("--verify", self.verify),
            ("--prove", self.prove),
            ("--always", self.always),
        ];
        if let Some((option, _)) = live.iter().find(|(_, given)| *given) {
            return Err(Failure::failed(format!("{option} does not apply to a trace")));
        }
        rights::keep(&[Purpose::Files])?;
        let (watched, above) = (self.watched(), self.above);
        self.run.measurement().make(self.verbose, || file::explain(path, watched, above))
    }

    /// Records late wake-ups until it is ended.
    fn always(&self) -> Result<()> {
        let watched = self.watched().unwrap_or(Watched::Realtime);
        let explain = ExplainPlan { watch: Some(watched.clone()), ..ExplainPlan::default() };
        let (length, out) = self.run.always()?;
        explain::check(&explain)?;
        rights::keep(rights::HERE)?;
        let above = self.above;
        always::run(&always::Options { watched, above, length, out, keep: self.keep })
    }

    /// The tasks to watch instead of those of probes.
    fn watched(&self) -> Option<Watched> {
        match (self.pid, &self.comm) {
            (Some(pid), _) => Some(Watched::Task(pid)),
            (None, Some(name)) => Some(Watched::Name(name.clone())),
            (None, None) => self.rt.then_some(Watched::Realtime),
        }
    }

    /// The option that was given and applies to the laboratory only.
    fn only_in_laboratory(&self) -> Option<&'static str> {
        self.traced.then_some("--traced").or(self.verify.then_some("--verify"))
    }

    fn plan(&self) -> Result<Plan> {
        let watch = self.watched();
        if watch.is_some() {
            self.run.check_watching()?;
        }
        if let Some(option) =
            self.only_in_laboratory().filter(|_| !self.run.measurement().is_in_instructions())
        {
            let why = format!(
                "{option} is for the laboratory (--on lab:PROFILE): elsewhere, explain always \
                       traces with BPF"
            );
            return Err(Failure::failed(why));
        }
        let mut plan = self.run.plan()?;
        if self.prove && plan.stop_above.is_some() {
            let why = "--prove compares whole runs: leave --stop-above out";
            return Err(Failure::failed(why));
        }
        if watch.is_some() {
            plan.probes.clear();
        }
        let traced = self.traced || self.verify || self.prove;
        let (above, verify, running) = (self.above, self.verify, self.running);
        let explain = ExplainPlan { above, watch, traced, verify, running };
        Ok(Plan { explain: Some(explain), ..plan })
    }
}
