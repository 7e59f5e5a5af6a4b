//! `latlab check`: whether a program is real-time.

use super::complete;
use super::guest_program::GuestProgram;
use super::reserved::Reserved;
use super::rights;
use super::target_options::TargetOptions;
use latlab_check::{Report, Rule, Verdict, WarmUp};
use latlab_core::time::Nanos;
use latlab_format::foreign::Foreign;
use latlab_format::{self as format, check, junit};
use latlab_measure::check::{Order, Subject, watch};
use latlab_measure::session::Collected;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::progress::Stream;
use latlab_sys::signal::Signals;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  latlab check -- ./control                    start a program and check it until it ends
  latlab check --pid 4711 --for 30s            check a running program
  latlab check --deadline 800us -- ./control   each cycle has to end within 800 us
  latlab check --warm-up 2s -- ./control       do not judge the cycles of the first 2 s
  latlab check --any-policy -- ./robot         check a loop that stays SCHED_OTHER
  latlab check --on lab:rt -- ./control        the same in the laboratory, with repeatable times
  latlab check --on ssh:root@board --pid 4711  check a process of another machine
  latlab check --fail-on fault,allocation --junit check.xml -- ./control";

/// Check whether a program is real-time: breaches of the rules in its cycles
///
/// Watches the real-time threads of a program and of its child processes; with --any-policy, all of
/// them. The cycle of a thread is found from the way it sleeps (clock_nanosleep, timerfd, poll, futex):
/// it lasts from the end of one wait to the start of the next. Page faults, memory allocation, file I/O, sleeping, mutexes
/// without priority inheritance and other breaches in cycles are reported with the function, file
/// and line of the program. What happens before the first cycle breaches no rule.
///
/// If the program ends and leaves processes, as a daemon does, these are watched until they end. They are
/// ended if --for is over; they run on if none of them is real-time for 10 s.
///
/// The output begins with the verdict. The breaches of each thread follow, errors before warnings,
/// then its cycle: latency, running time and response time, and what took the time of overruns: the
/// causes of latlab explain before the thread ran, and preemption, sleeping, page faults, system
/// calls, interrupts or the program itself while it ran. The program's output goes to
/// stderr.
///
/// If the program has marks of the parts of its cycle (latlab-mark.h for C and C++, Part of latlab-period
/// for Rust, latlab.mark for Python), the report has the running time and the share of each part, and
/// says in which part each breach and overrun happened.
///
/// It needs root, or the capabilities CAP_BPF and CAP_PERFMON, and a kernel with BTF.
///
/// Exit codes: 0 real-time; 1 there is an error or, with --fail-on, a breach of a rule named there,
/// which may be a warning; 2 wrong input, such as a program without a cycle; 3 this machine can't check; 4 a check in a
/// guest was ended (Ctrl-C); 5 not decided: no error, but more than a tenth of the cycles of a thread are left out,
/// or more than a hundredth of the events were lost.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Check {
    /// Check this process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Stop after this time [default: 10s with --pid, otherwise when the program and the processes that it
    /// leaves end]
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    length: Option<Nanos>,
    /// Time within which each cycle has to end, from when it is due; an overrun is then an error
    /// [default: the next cycle]
    #[arg(long, value_name = "TIME", value_parser = super::positive)]
    deadline: Option<Nanos>,
    /// Do not judge the first cycles of each thread: those that begin in this time from the start of the
    /// first, such as 2s, or that many, such as 100cycles [default: judge all]
    #[arg(long, value_name = "TIME|COUNTcycles")]
    warm_up: Option<WarmUp>,
    /// Check the threads of every policy, as those of a loop that stays SCHED_OTHER; no rule about tasks of
    /// lower priority applies to these [default: real-time threads]
    #[arg(long)]
    any_policy: bool,
    /// Exit with 1 for breaches of these rules only [default: all errors]
    #[arg(long, value_name = "RULE,…", value_delimiter = ',')]
    fail_on: Vec<Rule>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Also write a JUnit XML file with a test case for each rule
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    guest: GuestProgram,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = complete::COMMAND, required_unless_present = "pid", conflicts_with = "pid")]
    command: Vec<OsString>,
    #[command(flatten)]
    options: TargetOptions,
}

/// Exit code of a check that saw no breach, and too little.
const UNDECIDED: u8 = 5;
/// Time for which a running process is watched by default.
const LENGTH: Nanos = Nanos::from_secs(10);

impl Check {
    /// Returns the exit code: 0; 1 for a program that is not real-time; or the code of a check
    /// without a verdict. From a guest or a host, it may also be the code of a failure there.
    pub(super) fn run(&self) -> Result<u8> {
        let junit = self.junit.as_deref().map(Reserved::begin_test_cases).transpose()?;
        if self.guest.on.is_some() {
            return self.run_elsewhere(junit);
        }
        self.options.check("native")?;
        if self.pid.is_some() {
            rights::keep(rights::HERE)?;
        }
        let signals = Signals::block().context("signals can't be blocked")?;
        self.show(&watch(&self.order(), &signals, &format::say)?, junit)
    }

    fn run_elsewhere(&self, junit: Option<Reserved>) -> Result<u8> {
        let on_host = self.guest.is_on_host();
        if self.pid.is_some() && !on_host {
            let why = "--pid names a process: with --on lab:PROFILE or vm:PROFILE, give a program";
            return Err(Failure::failed(why));
        }
        let flags = [("for", self.length), ("deadline", self.deadline)];
        let flags = flags.into_iter().filter_map(|(name, time)| Some((name, time?)));
        let flags = flags.map(|(name, time)| format!("--{name}={}ns", time.0));
        let words = ["check", "--json"].map(str::to_owned).into_iter();
        let process = self.pid.map(|pid| format!("--pid={pid}"));
        let warm_up = self.warm_up.map(|warm_up| format!("--warm-up={warm_up}"));
        let any_policy = self.any_policy.then(|| "--any-policy".to_owned());
        let words = words.chain(process).chain(warm_up).chain(any_policy).chain(flags).collect();
        let mut foreign = Foreign::default();
        let mut json = Collected::at_most(super::LONGEST);
        let mut output = |stream: Stream, bytes: &[u8]| match stream {
            Stream::Stdout => json.add(bytes),
            Stream::Stderr if on_host => show_program(foreign.text(bytes).as_bytes()),
            // The program in a guest is one of this machine.
            Stream::Stderr => show_program(bytes),
        };
        let (guest, command, options) = (&self.guest, &self.command, &self.options);
        let code = if on_host {
            guest.run_on_host(words, command, options, &mut output)?
        } else {
            guest.run(words, self.length, command, options, &mut output)?
        };
        if code > 1 && code != UNDECIDED {
            return Ok(code);
        }
        let report: Report =
            serde_json::from_slice(json.bytes()).context("the report can't be read")?;
        self.show(&report, junit)
    }

    /// Prints the report and writes the test cases. Returns the exit code.
    fn show(&self, report: &Report, junit: Option<Reserved>) -> Result<u8> {
        let printed = if self.json {
            let json = serde_json::to_string_pretty(report).expect("a report is plain data");
            format::put(&(json + "\n"))
        } else {
            format::show(&check::text(report, &self.fail_on))
        };
        if let Some(file) = junit {
            file.write(&junit::xml("check", &check::cases(report, &self.fail_on)))?;
        }
        printed?;
        Ok(match report.verdict(&self.fail_on) {
            Verdict::RealTime => 0,
            Verdict::NotRealTime => 1,
            Verdict::Undecided => UNDECIDED,
        })
    }

    fn order(&self) -> Order {
        let (subject, length) = match self.pid {
            Some(pid) => (Subject::Process(pid), Some(self.length.unwrap_or(LENGTH))),
            None => (Subject::Command(self.command.clone()), self.length),
        };
        let warm_up = self.warm_up.unwrap_or_default();
        let (deadline, any_policy) = (self.deadline, self.any_policy);
        Order { subject, deadline, warm_up, any_policy, length }
    }
}

/// Passes on the program's output. The report counts even if nobody reads the output.
fn show_program(output: &[u8]) -> io::Result<()> {
    match format::pass(Stream::Stderr, output) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        passed => passed,
    }
}
