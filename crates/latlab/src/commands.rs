//! The command line: one file for each command.

mod ab;
mod adapt;
mod agent;
mod bound;
mod check;
mod compare;
mod complete;
mod doctor;
mod exec;
mod explain;
mod generate;
mod guest_program;
mod kernel;
mod list;
mod measurement;
mod report;
mod reserved;
mod rights;
mod run;
mod scan;
mod study;
mod target_options;
mod usage;
mod watch;

use clap::{CommandFactory as _, Parser, Subcommand};
use latlab_core::compare::distinct;
use latlab_core::foreign::{self, TOOLS};
use latlab_core::record::{Record, RecordError};
use latlab_core::time::Nanos;
use latlab_format as format;
use latlab_measure::load;
use latlab_measure::probe;
use latlab_part::failure::{Context as _, Failure, FailureKind, Result, failed};
use latlab_sys::capabilities::Purpose;
use latlab_sys::file;
use latlab_sys::signal::Signals;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab run                                   wake-up latency of this machine (10 s)
  latlab run --load hackbench --load disk --out loaded.json && latlab report loaded.json
  latlab doctor                                latency hazards of this machine";

/// Measure Linux latency, find its causes, and verify fixes
#[derive(Debug, Parser)]
#[command(name = "latlab", version, after_help = EXAMPLES, max_term_width = 100)]
struct Latlab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Scan(scan::Scan),
    Study(study::Study),
    Explain(Box<explain::Explain>),
    Bound(bound::Bound),
    Check(check::Check),
    Watch(watch::Watch),
    Report(report::Report),
    Compare(compare::Compare),
    Ab(ab::Ab),
    Doctor(doctor::Doctor),
    Exec(exec::Exec),
    Adapt(adapt::Adapt),
    Kernel(kernel::Kernels),
    List(list::List),
    Generate(generate::Generate),
    #[command(hide = true)]
    Complete(complete::Complete),
    #[command(hide = true)]
    Agent(agent::Agent),
    /// Run a worker of a load; started by latlab itself
    #[command(hide = true)]
    LoadWorker {
        /// Orders, as JSON
        orders: String,
    },
    /// Run a worker of a probe; started by latlab itself
    #[command(hide = true)]
    ProbeWorker {
        /// Orders, as JSON
        orders: String,
    },
    /// Run the low-priority task of a scan; started by latlab itself
    #[command(hide = true)]
    ScanWorker {
        /// Orders, as JSON
        orders: String,
    },
}

impl Command {
    /// The purposes for which the command needs capabilities. None if they depend on its plan, or
    /// if a program of the user's gets all: those commands drop capabilities themselves.
    fn purposes(&self) -> Option<&'static [Purpose]> {
        match self {
            Command::Report(_)
            | Command::Compare(_)
            | Command::List(_)
            | Command::Generate(_)
            | Command::Complete(_) => Some(&[Purpose::Files]),
            Command::Adapt(adapt) if adapt.only_reads() => Some(&[Purpose::Files]),
            Command::Doctor(doctor) if doctor.is_elsewhere() => Some(rights::ELSEWHERE),
            Command::Kernel(_) => Some(rights::ELSEWHERE),
            Command::Study(_) => Some(rights::EVERYWHERE),
            Command::Doctor(_) | Command::Adapt(_) | Command::Watch(_) => Some(rights::HERE),
            Command::Run(_)
            | Command::Scan(_)
            | Command::Explain(_)
            | Command::Bound(_)
            | Command::Ab(_)
            | Command::Exec(_)
            | Command::Agent(_)
            | Command::Check(_)
            | Command::LoadWorker { .. }
            | Command::ProbeWorker { .. }
            | Command::ScanWorker { .. } => None,
        }
    }
}

/// The command line. The long help of some commands also lists probes, loads or calls.
fn command_line() -> clap::Command {
    let parts = list::probes_and_loads();
    let (run, explain) = (parts.clone() + run::EXAMPLES, parts + explain::EXAMPLES);
    let scan = list::calls() + scan::EXAMPLES;
    Latlab::command()
        .mut_subcommand("run", |command| command.after_long_help(run))
        .mut_subcommand("scan", |command| command.after_long_help(scan))
        .mut_subcommand("explain", |command| command.after_long_help(explain))
}

/// Parses the command line and runs the command. Returns the exit code: 0, or the exit code of a
/// program that `exec` has run in a guest.
pub(crate) fn dispatch(arguments: impl Iterator<Item = OsString>) -> Result<u8> {
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.len() < 2 {
        return usage::print_help(&mut command_line()).map(|()| 0);
    }
    let matches = match command_line().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => {
            let command = usage::command(&command_line(), &arguments);
            return usage::print_clap(&error, &command).map(|()| 0);
        }
    };
    let latlab: Latlab =
        clap::FromArgMatches::from_arg_matches(&matches).expect("clap has checked what it gives");
    if let Some(purposes) = latlab.command.purposes() {
        rights::keep(purposes)?;
    }
    let done = match latlab.command {
        Command::Run(run) => run.run(),
        Command::Scan(scan) => scan.run(),
        Command::Study(study) => study.run(),
        Command::Explain(explain) => explain.run(),
        Command::Bound(bound) => bound.run(),
        Command::Check(check) => return check.run(),
        Command::Watch(watch) => watch.run(),
        Command::Report(report) => report.run(),
        Command::Compare(compare) => compare.run(),
        Command::Ab(ab) => ab.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Exec(exec) => return exec.run(),
        Command::Adapt(adapt) => adapt.run(),
        Command::Kernel(kernel) => kernel.run(),
        Command::List(list) => list.run(),
        Command::Generate(generate) => generate.run(command_line()),
        Command::Complete(complete) => complete.run(&command_line()),
        Command::Agent(agent) => agent.run(),
        Command::LoadWorker { orders } => load::serve(&orders),
        Command::ProbeWorker { orders } => probe::serve(&orders),
        Command::ScanWorker { orders } => latlab_measure::scan::serve(&orders),
    };
    done.map(|()| 0)
}

/// Reads the words of a `run` command, without the program's name. `side` starts the message of a
/// failure.
fn run_command(words: &[String], side: &str) -> Result<run::Run> {
    let refused = |why: &str| failed(side, why);
    if words.first().is_none_or(|word| word != "run") {
        return Err(refused("it is no run command: write run and its options"));
    }
    let arguments = std::iter::once("latlab").chain(words.iter().map(String::as_str));
    let latlab = Latlab::try_parse_from(arguments)
        .map_err(|error| refused(&usage::sentence(&error, "latlab run")))?;
    match latlab.command {
        Command::Run(run) => Ok(run),
        _ => Err(refused("it is no run command")),
    }
}

/// Blocks the signals that end a measurement. They stay blocked until latlab has ended: a second Ctrl-C, or a
/// client that disconnects, must not replace the exit code.
fn block_signals() -> Result<ManuallyDrop<Signals>> {
    Signals::block().map(ManuallyDrop::new).context("signals can't be blocked")
}

/// Returns the more serious of two failures, and prints the other where it says something else.
fn worse(one: Result<()>, other: Result<()>) -> Result<()> {
    let (one, other) = match (one, other) {
        (one, other) if one == other => return one,
        (Ok(()), result) | (result, Ok(())) => return result,
        (Err(one), Err(other)) => (one, other),
    };
    let rank = |failure: &Failure| match failure.kind {
        FailureKind::Worse => 0,
        FailureKind::CutShort => 1,
        FailureKind::Failed | FailureKind::Unsupported | FailureKind::OtherKernel => 2,
        // Its exit code must not depend on the order of targets.
        FailureKind::Unrestored => 3,
    };
    let (serious, minor) = if rank(&other) > rank(&one) { (other, one) } else { (one, other) };
    format::say(&minor.to_string());
    Err(serious)
}

/// Reads a time that is longer than zero.
fn positive(text: &str) -> std::result::Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos(0)) => Err("a time longer than 0 is needed".to_owned()),
        Ok(time) => Ok(time),
        Err(e) => Err(e.to_string()),
    }
}

/// Merges runs of the same plan into one record, which has the seed of the first run.
fn merged(runs: &[Record]) -> Option<Record> {
    let (first, others) = runs.split_first()?;
    let mut merged = first.clone();
    for other in others {
        let with_same_seed = Record { plan: first.plan.clone(), ..other.clone() };
        merged.merge(&with_same_seed).expect("runs() refuses runs that do not repeat the first");
    }
    Some(merged)
}

/// Reads runs of the same plan, whose seeds may differ. The path is a record, a folder of records,
/// a pattern in which `*` matches any part of a name, or several of these separated by commas.
/// Returns at least one run.
fn runs(path: &Path) -> Result<Vec<Record>> {
    let files = run_files(path)?;
    let mut runs: Vec<Record> = Vec::new();
    for file in &files {
        let run = record_in(file)?;
        if let Some(first) = runs.first() {
            let both = format!("{} and {}", files[0].display(), file.display());
            first.is_repeated_by(&run).context(&both)?;
        }
        runs.push(run);
    }
    Ok(distinct(runs))
}

fn run_files(path: &Path) -> Result<Vec<PathBuf>> {
    let (name, text) = (path.display().to_string(), path.to_string_lossy());
    let found = if path.is_dir() {
        record_files(path)?
    } else if path.exists() {
        vec![path.to_owned()]
    } else if text.contains(',') {
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(|part| run_files(Path::new(part))).collect::<Result<Vec<_>>>()?.concat()
    } else if text.contains(['*', '?', '[']) {
        let found = glob::glob(&text).map_err(|e| failed(&name, e.msg))?;
        let failed_at = |e: glob::GlobError| failed(&e.path().display().to_string(), e.error());
        found.map(|path| path.map_err(failed_at)).collect::<Result<_>>()?
    } else {
        vec![path.to_owned()]
    };
    if found.is_empty() {
        return Err(failed(&name, "it contains no record (*.json)"));
    }
    Ok(found)
}

/// The records in a folder, sorted by name. Fails where it can't be listed to its end: a verdict on
/// fewer runs would be another one.
fn record_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let paths: std::io::Result<Vec<PathBuf>> = paths();
    let mut paths = paths.at(folder)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    Ok(paths)
}

/// Bytes of the longest file that is read, far more than any record or report of a check has.
const LONGEST: u64 = 256 << 20;

fn record_in(path: &Path) -> Result<Record> {
    let name = path.display().to_string();
    let bytes = file::read_at_most(path, LONGEST).context(&name)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| failed(&name, "this is not a latlab record: it is not UTF-8"))?;
    match Record::from_json(&text) {
        Err(error @ RecordError::Foreign(_)) => match foreign::read(&text) {
            Some(read) => read.context(&name).inspect(|record| say_what_is_unknown(&name, record)),
            None if text.trim_start().starts_with('{') => Err(failed(&name, error)),
            None => Err(failed(&name, format!("{error}; nor is it a result of {TOOLS}"))),
        },
        record => record.context(&name),
    }
}

/// Prints what the result of another tool leaves unknown, and what it shows.
fn say_what_is_unknown(name: &str, record: &Record) {
    record.warnings.iter().for_each(|warning| format::say(&format!("{name}: {}", warning.text)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_to_restore_is_the_most_serious_in_any_order() {
        let unrestored = || Err(Failure::unrestored("not restored: governor"));
        for other in [
            Failure::unsupported("no cpufreq"),
            Failure::failed("no such host"),
            Failure::cut_short("ended early"),
        ] {
            assert_eq!(worse(unrestored(), Err(other.clone())), unrestored());
            assert_eq!(worse(Err(other), unrestored()), unrestored());
        }
    }
}
