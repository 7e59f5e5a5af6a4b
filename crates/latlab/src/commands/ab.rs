//! `latlab ab`: measures two sides in turns until it is known whether they differ.

use super::block_signals;
use super::rights;
use super::run::Run;
use super::worse;
use latlab_core::compare::turns::{self, Look};
use latlab_core::compare::{self, Comparison, Latency};
use latlab_core::plan::{Length, Plan};
use latlab_core::record::{Record, WarningCode, settings_turned};
use latlab_format::progress::Bar;
use latlab_format::width::Width;
use latlab_format::{self as format, comparison, text};
use latlab_measure::engine::Outcome;
use latlab_part::failure::{Context as _, Failure, FailureKind, Result, failed};
use latlab_sys::file::write_atomically;
use latlab_sys::signal::Signals;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  latlab ab -- run cyclic -- run cyclic --set timer_migration=0
  latlab ab -n 20 --out turns/ -- run --for 5s -- run --for 5s --load fork
  latlab ab -- run --on lab:standard --count 1000 --load fork -- run --on lab:rt --count 1000 --load fork";

/// Measure two sides in turns (ABBA) until it is known whether they differ
///
/// Each side is a run command with its options. After six pairs of runs, and then at larger and
/// larger numbers of pairs, the sides are compared as latlab compare does; ab ends as soon as a
/// difference is decided, at the latest after -n pairs. If the sides do not differ, at most 1 of 40
/// such comparisons decides that they do. Pair N runs with the seed N (plus --seed of the side), so
/// that probes meet other moments of the loads each time.
///
/// A sample above a side's --stop-above ends ab; runs with samples above their --fail-above are
/// compared like the others.
///
/// Exit codes: 0 success, whatever the verdict; 1 a sample of a side was above its --stop-above or
/// --fail-above; 2 failure, a load or CPU of a run was lost, or another program turned what a side
/// sets; 3 this machine lacks something that a side needs; 4 it was ended early (Ctrl-C). The pairs
/// measured before that are compared, unless a setting was turned.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = "latlab ab [OPTIONS] -- run [OPTIONS] -- run [OPTIONS]")]
pub(super) struct Ab {
    /// Largest number of pairs of runs, 6 to 100
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = pairs)]
    pairs: usize,
    /// Write the records to the folders a and b in this folder, for report and compare; that of a run
    /// that --stop-above ended to stopped.json
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
    /// The two run commands
    #[arg(last = true, required = true, value_name = "run … -- run …")]
    sides: Vec<String>,
}

fn pairs(text: &str) -> std::result::Result<usize, String> {
    let number = text.parse().ok().filter(|number| turns::PAIRS.contains(number));
    number.ok_or_else(|| {
        format!("a number from {} to {} is needed", turns::PAIRS.start(), turns::PAIRS.end())
    })
}

/// A side: its command, and its records so far.
struct Side {
    /// `A` or `B`.
    name: &'static str,
    /// The command as written.
    words: String,
    run: Run,
    plan: Plan,
    records: Vec<Record>,
    /// Number of runs with a sample above --fail-above.
    exceeded: usize,
    /// Codes of the warnings that were printed, and knobs that were not restored.
    reported: Vec<String>,
}

/// The file of a run that --stop-above ended, in the folder of --out.
const STOPPED: &str = "stopped.json";

/// How a run ended.
enum Turn {
    Whole,
    /// By a sample above --stop-above.
    Stopped(Box<Record>, Failure),
    Interrupted,
}

/// Why no more pairs are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Decided,
    AllPairs,
    Interrupted,
}

impl Ab {
    pub(super) fn run(&self) -> Result<()> {
        let [mut a, mut b] = self.sides()?;
        rights::keep_for(&[&a, &b].map(|side| (&side.plan, side.run.measurement().is_native())))?;
        [&a, &b].into_iter().try_for_each(|side| self.check_folder(side))?;
        let signals = block_signals()?;
        let end = self.measure(&mut a, &mut b, &signals);
        // Only whole pairs are compared.
        let pairs = a.records.len().min(b.records.len());
        for side in [&mut a, &mut b] {
            side.records.truncate(pairs);
        }
        let compared = compared(&a, &b, self.look_after(pairs));
        // A failure does not lose the pairs before it; sides that can't be compared have none.
        let shown = match (pairs, &compared) {
            (1.., Ok(comparison)) => self.show(end.as_ref().ok(), &a, &b, comparison),
            _ => Ok(()),
        };
        let ended = end.and_then(|end| match end {
            End::Interrupted => {
                Err(Failure::cut_short(format!("ended early, after {pairs} pairs of runs")))
            }
            End::Decided | End::AllPairs => compared.map(drop),
        });
        [a, b].iter().fold(worse(ended, shown), |result, side| worse(result, side.check_limit()))
    }

    /// Prints the comparison as text or JSON. `end` is none after a failure.
    fn show(&self, end: Option<&End>, a: &Side, b: &Side, comparison: &Comparison) -> Result<()> {
        if self.json {
            return format::put(&comparison::json(comparison, &[]));
        }
        let (pairs, most) = (a.records.len(), self.pairs);
        let conclusion = match end {
            Some(End::Decided) => format!(
                "Decided after {pairs} of at most {most} pairs (if the sides did not differ, at \
                 most 1 of 40 such comparisons would be decided)."
            ),
            Some(End::AllPairs) => format!(
                "Not decided after {pairs} pairs: the sides do not differ, or by less than these \
                 pairs can show; -n sets their number."
            ),
            Some(End::Interrupted) | None => format!("Ended early, after {pairs} of {most} pairs."),
        };
        let width = Width::of_stdout();
        let text = comparison::text(&a.words, &b.words, comparison, &[], width);
        format::show(&format!("{conclusion}\n\n{text}"))
    }

    /// Reads both sides.
    fn sides(&self) -> Result<[Side; 2]> {
        let sides: Vec<&[String]> = self.sides.split(|word| word == "--").collect();
        let [a, b] = sides[..] else {
            return Err(Failure::failed(format!(
                "two run commands are needed, each after --, and there are {}: see latlab ab --help",
                sides.len()
            )));
        };
        Ok([side("A", a)?, side("B", b)?])
    }

    /// Measures pairs until a difference is decided.
    fn measure(&self, a: &mut Side, b: &mut Side, signals: &Signals) -> Result<End> {
        for pair in 1..=self.pairs {
            let turn = if pair % 2 == 1 { [&mut *a, &mut *b] } else { [&mut *b, &mut *a] };
            for side in turn {
                match side.measure(pair, signals)? {
                    Turn::Whole => {}
                    Turn::Interrupted => return Ok(End::Interrupted),
                    Turn::Stopped(record, why) => {
                        let written = self.write(&record, STOPPED);
                        written.inspect_err(|_| format::say(&why.to_string()))?;
                        return Err(why);
                    }
                }
            }
            // Together: a run without its counterpart would be compared like one of another kind.
            for side in [&*a, &*b] {
                let record = side.records.last().expect("its run was whole");
                self.write(record, &format!("{}/{pair:03}.json", side.folder()))?;
            }
            let comparison = compared(a, b, self.look_after(pair))?;
            let decided = turns::look(pair, self.pairs).is_some() && turns::is_decided(&comparison);
            format::say(&self.known(pair, decided, &comparison));
            if decided {
                return Ok(End::Decided);
            }
            check_length(&comparison, a, b)?;
        }
        Ok(End::AllPairs)
    }

    /// Refuses a folder that is not empty, and the record of a run that an earlier command stopped.
    fn check_folder(&self, side: &Side) -> Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        let folder = out.join(side.folder());
        let is_used = std::fs::read_dir(&folder).is_ok_and(|mut all| all.next().is_some());
        let why = "it is not empty, and its records would be compared with those of this command: \
                   name another folder with --out";
        if is_used {
            return Err(failed(&folder.display().to_string(), why));
        }
        let stopped = out.join(STOPPED);
        let why = "it is of an earlier command: name another folder with --out";
        if stopped.exists() { Err(failed(&stopped.display().to_string(), why)) } else { Ok(()) }
    }

    /// Writes a record to this path in the folder of --out.
    fn write(&self, record: &Record, path: &str) -> Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        let path = out.join(path);
        let folder = path.parent().unwrap_or(out);
        std::fs::create_dir_all(folder).at(folder)?;
        write_atomically(&path, record.to_json().as_bytes()).at(&path)
    }

    /// The look after this number of pairs. Where none is due, it is the last one: its verdict
    /// counts only if no more pairs follow.
    fn look_after(&self, pairs: usize) -> Look {
        turns::look(pairs, self.pairs).unwrap_or_else(|| turns::last_look(self.pairs))
    }

    /// One line about the pairs measured so far.
    fn known(&self, pair: usize, decided: bool, comparison: &Comparison) -> String {
        let next = match turns::pairs_to_next_look(pair, self.pairs) {
            _ if decided => "; decided".to_owned(),
            _ if comparison.too_short.is_some() => String::new(),
            0 => String::new(),
            1 => "; judged after 1 more pair".to_owned(),
            n => format!("; judged after {n} more pairs"),
        };
        let effect = comparison.latencies.first().map(Latency::effect).unwrap_or_default();
        let effect = match effect.is_empty() {
            true => effect,
            false if decided => format!(": B's {effect}"),
            false => format!(" (so far, perhaps by chance: B's {effect})"),
        };
        format!("pair {pair} of at most {}{effect}{next}", self.pairs)
    }
}

impl Side {
    /// The name of the folder of its records.
    fn folder(&self) -> String {
        self.name.to_lowercase()
    }

    /// Measures one run, and keeps its record if it is whole.
    fn measure(&mut self, pair: usize, signals: &Signals) -> Result<Turn> {
        let plan = Plan { seed: self.plan.seed.saturating_add(pair as u64), ..self.plan.clone() };
        let mut bar = Bar::new(signals);
        let outcome = self.run.measurement().outcome(&plan, signals, &mut bar);
        drop(bar);
        let outcome = match outcome {
            // A guest that was ended has no record.
            Err(failure) if failure.kind == FailureKind::CutShort => return Ok(Turn::Interrupted),
            outcome => outcome?,
        };
        self.report(&outcome);
        if let Some(above) = outcome.verdict.as_ref().filter(|why| why.kind == FailureKind::Worse) {
            let above = above.clone().about(&format!("side {}", self.name));
            if outcome.record.warnings.iter().any(|one| one.code == WarningCode::StoppedAbove) {
                return Ok(Turn::Stopped(Box::new(outcome.record), above));
            }
            format::say(&above.to_string());
            self.exceeded += 1;
        }
        match outcome.check_whole() {
            Ok(()) => self.records.push(outcome.record),
            Err(failure) if failure.kind == FailureKind::CutShort => return Ok(Turn::Interrupted),
            Err(failure) if outcome.record.setting_changed().is_some() => {
                return Err(self.refuse(failure));
            }
            Err(failure) => return Err(failure),
        }
        match settings_turned(&plan.settings, &self.records) {
            Some(why) => Err(self.refuse(Failure::failed(why))),
            None => Ok(Turn::Whole),
        }
    }

    /// Drops all runs, as another program has turned a setting, perhaps in earlier ones too.
    fn refuse(&mut self, why: Failure) -> Failure {
        self.records.clear();
        why.about(&format!("side {}", self.name))
    }

    /// Fails if samples were above --fail-above.
    fn check_limit(&self) -> Result<()> {
        let (name, runs) = (self.name, self.exceeded);
        let above = format!("side {name}: samples above --fail-above in {runs} of its runs");
        if runs == 0 { Ok(()) } else { Err(Failure::worse(above)) }
    }

    /// Prints the warnings of a run, and the changes that were not restored, unless an earlier run had
    /// one of the same kind or of the same knob.
    fn report(&mut self, outcome: &Outcome) {
        let warnings = outcome.warnings().map(|one| (one.code.clone(), one.text.clone()));
        let changed = outcome.record.changes.iter().filter(|change| !change.restored);
        let changed = changed.map(|change| (change.knob.clone(), text::unrestored(change)));
        for (kind, line) in warnings.chain(changed) {
            if !self.reported.contains(&kind) {
                format::say(&format!("side {}: {line}", self.name));
                self.reported.push(kind);
            }
        }
    }
}

/// Reads a side from its words.
fn side(name: &'static str, words: &[String]) -> Result<Side> {
    let run = super::run_command(words, &format!("side {name}"))?;
    let refused = |failure: Failure| failed(&format!("side {name}"), failure);
    run.measurement().check_side().map_err(refused)?;
    let plan = run.plan().map_err(refused)?;
    let (words, records, reported) = (words.join(" "), Vec::new(), Vec::new());
    Ok(Side { name, words, run, plan, records, exceeded: 0, reported })
}

/// Refuses runs that are too short for any number of them to show a difference, and says how long
/// they have to be.
fn check_length(comparison: &Comparison, a: &Side, b: &Side) -> Result<()> {
    let Some(times) = comparison.too_short else { return Ok(()) };
    let longer = if times.is_finite() {
        let [a, b] = [a, b].map(|side| longer(side.plan.length, times));
        format!("give A {a} and B {b} or more")
    } else {
        "measure much longer, with --for or --count".to_owned()
    };
    Err(Failure::failed(format!(
        "the runs are too short for a verdict, which needs ten samples above a quantile in each run \
         (missed periods are no samples): {longer}"
    )))
}

/// The option for a measurement that is this many times as long.
fn longer(length: Length, times: f64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a run is shorter than 2^53 ns")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as above")]
    let grown = |value: u64| (value as f64 * times).ceil() as u64;
    match length {
        Length::For(time) => format!("--for {}ms", grown(time.0).div_ceil(1_000_000)),
        Length::Count(count) => format!("--count {}", grown(count)),
    }
}

fn compared(a: &Side, b: &Side, look: Look) -> Result<Comparison> {
    compare::compare_at(&a.records, &b.records, look).context("A and B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::time::Nanos;

    #[test]
    fn longer_run_is_given_as_an_option() {
        let third = Length::For(Nanos::from_millis(300));
        assert_eq!(longer(third, 4.34), "--for 1302ms");
        assert_eq!(longer(Length::For(Nanos(1)), 2.0), "--for 1ms");
        assert_eq!(longer(Length::Count(15), 10.0 / 7.5), "--count 20");
    }
}
