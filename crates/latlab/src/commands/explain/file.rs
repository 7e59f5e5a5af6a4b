//! `latlab explain FILE`: explains the late wake-ups of a trace that another tool has recorded.

use crate::commands::{LONGEST, block_signals};
use latlab_core::foreign;
use latlab_core::machine::Machine;
use latlab_core::plan::{ExplainPlan, Length, Plan, Watched};
use latlab_core::record::explained::Explanations;
use latlab_core::record::{Record, Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_format::progress::Bar;
use latlab_measure::explain::TraceExplainer;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_part::progress::Progress as _;
use latlab_sys::process::{self, Running};
use latlab_sys::signal::{Event, Signals};
use latlab_trace::Trace;
use latlab_trace::section::{self, Section};
use latlab_trace::timehist::{self, Timehist};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use std::process::Stdio;

/// Bytes that are read first, to learn which events a trace has.
const HEAD: u64 = 16 << 20;
/// Longest line: no event has one.
const LINE: u64 = 1 << 20;
/// Bytes between two looks at signals and the progress.
const STEP: u64 = 4 << 20;
/// Most names of tasks that are listed where a task is not found.
const LISTED: usize = 8;

/// How traces of tools begin, in their own formats.
const TRACE_DAT: &[u8] = b"\x17\x08\x44tracing";
const PERF_DATA: &[u8] = b"PERFILE2";

/// A trace that is opened.
struct Source {
    /// Its first bytes, and the rest.
    head: Vec<u8>,
    rest: Box<dyn Read>,
    /// The tool that prints it, if it is not text.
    printer: Option<(&'static str, Running)>,
    /// Size of the text; none if it is not known.
    size: Option<u64>,
}

/// Reads a trace, and explains the late wake-ups of these tasks. Beside the record, returns a failure if the user ended
/// it early.
pub(super) fn explain(
    path: &Path,
    watched: Option<Watched>,
    above: Option<Nanos>,
) -> Result<(Record, Result<()>)> {
    let source = Source::open(path)?;
    let name = path.display().to_string();
    let text = source.text();
    if let Some(section) = section::read(&text) {
        let text = source.whole(&name)?;
        let section = section::read(&text).unwrap_or(section).context(&name)?;
        return Ok((of_section(&section, above), Ok(())));
    }
    if timehist::read(&text, watched.clone()).is_some() {
        let table = timehist::read(&source.whole(&name)?, watched.clone());
        let table = table.filter(|table| !table.windows.is_empty());
        let table = table.ok_or_else(|| failed(&name, "it has no wake-up of the watched tasks"))?;
        return Ok((of_table(table, watched, above), Ok(())));
    }
    if let Some(Ok(_)) = foreign::read(&text) {
        let why = "it is the result of another tool and no trace: show it with latlab report";
        return Err(failed(&name, why));
    }
    let mut reading = Reading::new(watched, above);
    for line in text.lines() {
        reading.trace.expect(line);
    }
    drop(text);
    let ended = reading.read(source, &name)?;
    let record = reading.finish().map_err(|why| failed(&name, why))?;
    let cut_short =
        || Err(Failure::cut_short("ended early: the rest of the trace is not explained"));
    Ok((record, if ended { cut_short() } else { Ok(()) }))
}

impl Source {
    fn open(path: &Path) -> Result<Source> {
        let name = path.display().to_string();
        let mut file = File::open(path).context(&name)?;
        let size = file.metadata().context(&name)?.len();
        let mut begin = Vec::new();
        file.by_ref().take(TRACE_DAT.len() as u64).read_to_end(&mut begin).context(&name)?;
        let printer = match begin.as_slice() {
            TRACE_DAT => Some(("trace-cmd", ["report", "-t", "-i"].as_slice())),
            begin if begin.starts_with(PERF_DATA) => {
                Some(("perf", ["script", "--ns", "-i"].as_slice()))
            }
            _ => None,
        };
        let (mut rest, printer, size): (Box<dyn Read>, _, _) = match printer {
            Some((tool, options)) => {
                begin.clear();
                let mut command = process::command(tool);
                command.args(options).arg(path).stdout(Stdio::piped()).stderr(Stdio::null());
                let mut running = Running::start(&mut command).map_err(|e| match e.kind() {
                    ErrorKind::NotFound => {
                        let why = format!(
                            "{tool} reads this format: install it, or give the text that it prints"
                        );
                        Failure::unsupported(format!("{name}: {why}"))
                    }
                    _ => failed(tool, e),
                })?;
                let output = running.child().stdout.take().expect("it is a pipe");
                (Box::new(output), Some((tool, running)), None)
            }
            None => (Box::new(file), None, Some(size)),
        };
        let left = HEAD - begin.len() as u64;
        rest.by_ref().take(left).read_to_end(&mut begin).context(&name)?;
        if begin.contains(&0) {
            let why = "it is neither text, nor a file of trace-cmd (trace.dat) or perf (perf.data)";
            return Err(failed(&name, why));
        }
        Ok(Source { head: begin, rest, printer, size })
    }

    /// The text that was read first.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }

    /// The whole text of a trace that is read at once.
    fn whole(mut self, name: &str) -> Result<String> {
        self.rest.by_ref().take(LONGEST).read_to_end(&mut self.head).context(name)?;
        Ok(self.text())
    }
}

/// A trace while it is read.
struct Reading {
    trace: Trace,
    above: Option<Nanos>,
    explainer: Option<TraceExplainer>,
    /// The tasks whose wake-ups it explains.
    watched: Option<Watched>,
}

impl Reading {
    fn new(watched: Option<Watched>, above: Option<Nanos>) -> Reading {
        let mut trace = Trace::new(watched.clone());
        trace.set_above(above.unwrap_or_default());
        Reading { trace, above, explainer: None, watched }
    }

    /// Reads all lines. Returns whether the user ended it.
    fn read(&mut self, source: Source, name: &str) -> Result<bool> {
        let signals = block_signals()?;
        let mut bar = Bar::new(&signals);
        let Source { head, rest, printer, size } = source;
        let mut reader = BufReader::with_capacity(1 << 18, Cursor::new(head).chain(rest));
        let (mut line, mut done, mut shown) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            let length = reader.by_ref().take(LINE).read_until(b'\n', &mut line).context(name)?;
            if length == 0 {
                break;
            }
            done += length as u64;
            self.trace.read(&String::from_utf8_lossy(&line));
            self.explain();
            if done - shown >= STEP {
                shown = done;
                if let Some(size) = size {
                    bar.at(done, size);
                }
                if is_ended(&signals) {
                    return Ok(true);
                }
            }
        }
        self.trace.end();
        self.explain();
        match printer {
            Some((tool, mut running)) => {
                let status = running.child().wait().context(tool)?;
                let why = format!("{tool} can't read it ({status})");
                if status.success() { Ok(false) } else { Err(failed(name, why)) }
            }
            None => Ok(false),
        }
    }

    /// Explains the wake-ups that were read.
    fn explain(&mut self) {
        if self.trace.watched() != self.watched.as_ref() {
            // Real-time tasks have woken up: the others do not count.
            (self.watched, self.explainer) = (self.trace.watched().cloned(), None);
        }
        let late = self.trace.take();
        if late.is_empty() {
            return;
        }
        let (above, origin) = (self.above, self.trace.span().unwrap_or_default().0);
        let begin = || TraceExplainer::new(&Machine::default(), above, origin);
        let explainer = self.explainer.get_or_insert_with(begin);
        if let Some(names) = self.trace.new_names() {
            explainer.set_names(names);
        }
        for window in late {
            explainer.add(window);
        }
        self.trace.set_above(explainer.above());
    }

    /// The record. Fails with a clause where there is nothing to explain.
    fn finish(self) -> std::result::Result<Record, String> {
        let Reading { trace, above, explainer, .. } = self;
        if let Some(lack) = trace.lack() {
            return Err(lack.to_owned());
        }
        let wake_ups = trace.wake_ups();
        if wake_ups == 0 {
            return Err(absent(&trace));
        }
        let origin = trace.span().unwrap_or_default();
        let explainer =
            explainer.unwrap_or_else(|| TraceExplainer::new(&Machine::default(), above, origin.0));
        let (mut all, torn) = explainer.finish(wake_ups);
        let causes = &mut all.explained;
        (causes.lost, causes.missing) = (trace.lost(), trace.limits());
        if torn > 0 {
            causes.missing.push(format!(
                "{torn} late wake-ups with incomplete events: the trace begins after they were due, or events were lost"
            ));
        }
        let (cpus, watched) = (trace.cpus(), trace.watched().cloned());
        let machine = Machine { cpus: cpus.clone(), ..Machine::default() };
        let plan = Plan::bare("trace", cpus, Length::For(origin.1 - origin.0));
        let mut record = record(plan, machine, (above, watched), all);
        record.warnings.push(Warning::new(WarningCode::OtherTool, trace.level()));
        Ok(record)
    }
}

/// Why there is no wake-up.
fn absent(trace: &Trace) -> String {
    let tasks: Vec<String> = trace.tasks().into_iter().take(LISTED).collect();
    let who = match trace.watched() {
        Some(Watched::Name(name)) => format!("a task named '{name}'"),
        Some(Watched::Task(pid)) => format!("thread or process {pid}"),
        Some(Watched::Realtime) => "a real-time task".to_owned(),
        None => "a task".to_owned(),
    };
    let others = if tasks.is_empty() {
        String::new()
    } else {
        format!(": tasks that wake up in it are {}", tasks.join(", "))
    };
    format!("no wake-up of {who} is complete in it{others}")
}

/// The record of a section that a latency tracer has recorded, or of a wake-up.
fn of_section(section: &Section, above: Option<Nanos>) -> Record {
    let cpus = std::iter::once(section.cpu).collect();
    let machine = Machine { kernel: section.kernel.clone(), cpus, ..Machine::default() };
    let plan = Plan::bare("trace", machine.cpus.clone(), Length::Count(1));
    let mut explainer = TraceExplainer::new(&machine, above, Nanos(0));
    let latency = section.explanation.latency();
    let mut trace = Trace::new(None);
    section.events.iter().for_each(|line| trace.read(line));
    trace.end();
    let windows = trace.take();
    explainer.set_names(section.names.clone());
    let mut what = Vec::new();
    if windows.is_empty() {
        explainer.add_explained(&section.tracer, section.cpu, latency, section.explanation.clone());
        what.push(format!(
            "the tracer {} measures one section of a task, no wake-up: a wake-up on its CPU may wait until its end",
            section.tracer
        ));
    } else {
        for window in windows {
            explainer.add(window);
        }
        what.extend(trace.limits());
    }
    let (mut all, _) = explainer.finish(1);
    what.extend(section.notes.iter().cloned());
    all.explained.missing = what;
    record(plan, machine, (above, None), all)
}

/// The record of the table of perf sched timehist.
fn of_table(table: Timehist, watched: Option<Watched>, above: Option<Nanos>) -> Record {
    let Timehist { windows, has_priorities } = table;
    let origin = windows.iter().map(|window| window.due).min().unwrap_or_default();
    let cpus = windows.iter().map(|window| window.cpu).collect();
    let machine = Machine { cpus, ..Machine::default() };
    let end = windows.iter().map(|window| window.ran).max().unwrap_or_default();
    let plan = Plan::bare("trace", machine.cpus.clone(), Length::For(end - origin));
    let mut explainer = TraceExplainer::new(&machine, above, origin);
    let wake_ups = windows.len() as u64;
    for window in windows {
        explainer.add(window);
    }
    let (mut all, _) = explainer.finish(wake_ups);
    if !has_priorities {
        let why =
            "no priorities in the table: no cause can be told (perf sched timehist --show-prio)";
        all.explained.missing.push(why.to_owned());
    }
    let why =
        "the table has no interrupts and no stacks: only the tasks that had the CPU can be told";
    all.explained.missing.push(why.to_owned());
    record(plan, machine, (above, watched), all)
}

fn record(
    plan: Plan,
    machine: Machine,
    (above, watch): (Option<Nanos>, Option<Watched>),
    all: Explanations,
) -> Record {
    let explain = ExplainPlan { above, watch, ..ExplainPlan::default() };
    let plan = Plan { explain: Some(explain), ..plan };
    let mut record = Record::new("trace", Nanos(0), plan, machine);
    (record.explained, record.worst) = (Some(all.explained), all.worst);
    let text =
        "explained from a trace: the machine is not known, so remedies are general".to_owned();
    record.warnings.push(Warning::new(WarningCode::OtherTool, text));
    record
}

/// Whether the user has ended the command.
fn is_ended(signals: &Signals) -> bool {
    signals.wait(Nanos(0)) == Event::End
}
