//! Studies: finding and reading them, and the plans of their cells.

pub mod slurm;
mod stand_in;

use self::stand_in::StandIn;
use crate::target;
use latlab_adapt::mechanism;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Part, Plan, ScanPlan, Setting, SettingError};
use latlab_core::study::{self, Cell, SpannedText, Study, pieces};
use latlab_core::suggest;
use latlab_core::time::Nanos;
use latlab_lab::{kernel, profile};
use latlab_measure::call::CALLS;
use latlab_measure::load::LOADS;
use latlab_measure::probe::{self, PROBES};
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::part::needs::Needs;
use latlab_part::part::{self, Built};
use latlab_sys::file;
use latlab_sys::knob::Knob;
use std::path::{Path, PathBuf};

// `STUDIES`: name and text of every TOML file in `study/`, sorted by name.
include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// A study with its text, for messages that point into it.
#[derive(Debug)]
pub struct StudyFile {
    /// The name or the path that the user gave.
    pub name: String,
    /// The path of the file; none for a study that comes with latlab.
    pub path: Option<PathBuf>,
    text: String,
    /// The study.
    pub study: Study,
    /// The kernel of each cell, if the study was moved to a machine that runs only one.
    pub stand_ins: Vec<StandIn>,
}

/// The names of the studies that come with latlab.
pub fn names() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|(name, _)| *name)
}

/// Returns every study that comes with latlab, sorted by name.
pub fn shipped() -> Vec<(&'static str, Study)> {
    let read = |text| Study::read(text).expect("the tests have read it");
    STUDIES.iter().map(|(name, text)| (*name, read(text))).collect()
}

/// Finds a study by its name or the path of its file.
pub fn find(name: &str) -> Result<StudyFile> {
    if let Some((_, text)) = STUDIES.iter().find(|(shipped, _)| *shipped == name) {
        return read(name, None, (*text).to_owned());
    }
    if name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "toml") {
        let text = file::read_text(Path::new(name)).context(name)?;
        return read(name, Some(name.into()), text);
    }
    let names: Vec<&str> = STUDIES.iter().map(|(name, _)| *name).collect();
    let hint = suggest::hint(name, &names);
    Err(Failure::failed(format!(
        "there is no study '{name}': {hint} (the name of a file ends in .toml)"
    )))
}

fn read(name: &str, path: Option<PathBuf>, text: String) -> Result<StudyFile> {
    match Study::read(&text) {
        Ok(study) => {
            Ok(StudyFile { name: name.to_owned(), path, text, study, stand_ins: Vec::new() })
        }
        Err(fault) => Err(fault_at(name, &text, fault.at, &fault.why)),
    }
}

/// A failure that names the file, line and column of a fault. `at` is its byte offset.
fn fault_at(name: &str, text: &str, at: usize, why: &str) -> Failure {
    let (line, column) = study::place(text, at);
    Failure::failed(format!("{name}, line {line}, column {column}: {why}"))
}

impl StudyFile {
    /// Makes the plans of each cell, one for each repetition. Fails where a cell names a part that
    /// does not exist, or lacks a target, probe or scan.
    pub fn plans(&self) -> Result<Vec<Vec<Plan>>> {
        let plans = self.study.cells.iter().map(|cell| self.plans_of(cell));
        let plans = plans.collect::<Result<Vec<_>>>()?;
        let targets: Vec<&SpannedText> =
            self.study.cells.iter().filter_map(|cell| cell.terms.on.as_ref()).collect();
        if let Some(other) =
            targets.iter().find(|on| target::kind(&on.text) != target::kind(&targets[0].text))
        {
            let why = format!(
                "{} is another kind of target than {}: make two studies",
                other.text, targets[0].text
            );
            return Err(self.fault_at(other.at, &why));
        }
        match self.study.unmeasured() {
            Some(fault) => Err(self.fault_at(fault.at, &fault.why)),
            None => Ok(plans),
        }
    }

    fn plans_of(&self, cell: &Cell) -> Result<Vec<Plan>> {
        let terms = &cell.terms;
        let incomplete =
            |what: &str| Err(self.fault_at(cell.at, &format!("the cell {} {what}", cell.label)));
        let Some(on) = &terms.on else {
            return incomplete("has no target: write on = \"lab:rt\"");
        };
        self.locate(on, check_target(&on.text))?;
        let probes =
            self.parts(terms.probes.as_deref(), |text| part::parse("probe", PROBES, text, &[]))?;
        let in_instructions = on.text.starts_with("lab:");
        let scan = |call| ScanPlan::usual(call, in_instructions);
        let calls = self.parts(terms.scans.as_deref(), call)?;
        if probes.is_empty() && calls.is_empty() {
            return incomplete("has neither a probe nor a scan: write probes = [\"cyclic\"]");
        }
        let length = terms.length.unwrap_or(Length::For(Nanos::from_secs(10)));
        for (probe, words) in probes.iter().zip(terms.probes.iter().flatten()) {
            let built = Built::new("probe", PROBES, probe);
            self.locate(words, built.and_then(|probe| probe::check_length(&probe, length)))?;
        }
        let settings =
            terms.settings.iter().flatten().map(|words| self.locate(words, setting(&words.text)));
        let adapt = terms.adapt.clone().flatten().map(|words| {
            self.locate(&words, mechanism::names(&words.text).map_err(Failure::failed))
        });
        let plan = Plan {
            probes,
            scans: calls.into_iter().map(scan).collect(),
            loads: self.parts(terms.loads.as_deref(), load)?,
            warm_up: terms.warm_up.unwrap_or(Nanos::from_millis(200)),
            seed: terms.seed.unwrap_or_default(),
            settings: settings.collect::<Result<_>>()?,
            adapt: adapt.transpose()?.unwrap_or_default(),
            ..Plan::bare(&on.text, CpuList::default(), length)
        };
        // A repetition that is cut into pieces uses a seed for each of them.
        let step = pieces::number(length, pieces::LONGEST);
        let repetition = |nth| Plan { seed: plan.seed.wrapping_add(nth * step), ..plan.clone() };
        Ok((0..u64::from(terms.repeat.unwrap_or(1))).map(repetition).collect())
    }

    fn parts(
        &self,
        all: Option<&[SpannedText]>,
        parse: impl Fn(&str) -> Result<Part>,
    ) -> Result<Vec<Part>> {
        let all = all.unwrap_or_default().iter();
        all.map(|words| self.locate(words, parse(&words.text))).collect()
    }

    /// Adds the place of some words in the file to the failure of parsing them.
    fn locate<T>(&self, words: &SpannedText, parsed: Result<T>) -> Result<T> {
        parsed.map_err(|failure| self.fault_at(words.at, &failure.to_string()))
    }

    fn fault_at(&self, at: usize, why: &str) -> Failure {
        fault_at(&self.name, &self.text, at, why)
    }
}

fn load(text: &str) -> Result<Part> {
    let part = part::parse("load", LOADS, text, &[])?;
    check_starts_nothing(&Built::new("load", LOADS, &part)?.needs())?;
    Ok(part)
}

fn call(text: &str) -> Result<Part> {
    let part = part::parse("call", CALLS, text, &[])?;
    check_starts_nothing(&Built::new("call", CALLS, &part)?.needs())?;
    Ok(part)
}

/// Refuses a part that starts a program of the machine: anybody may have written the study.
fn check_starts_nothing(needs: &Needs) -> Result<()> {
    match needs.commands.first() {
        None => Ok(()),
        Some(command) => Err(Failure::failed(format!(
            "a study can't start '{}': commands are for latlab run and latlab scan",
            command.join(" ")
        ))),
    }
}

/// Refuses targets and profiles that do not exist.
fn check_target(name: &str) -> Result<()> {
    target::find(name)?;
    match name.split_once(':') {
        Some(("lab" | "vm", name)) => profile::find(name, &kernel::added()?).map(drop),
        _ => Ok(()),
    }
}

fn setting(text: &str) -> Result<Setting> {
    let setting: Setting =
        text.parse().map_err(|e: SettingError| Failure::failed(e.to_string()))?;
    if Knob::named(&setting.knob).is_none() {
        let why = format!("there is no knob '{}': see latlab list knobs", setting.knob);
        return Err(Failure::failed(why));
    }
    Ok(setting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_studies_have_valid_plans_and_name_their_paper() {
        for (name, _) in STUDIES {
            let file = find(name).unwrap_or_else(|failure| panic!("{failure}"));
            let study = &file.study;
            assert!(!study.paper.is_empty() && !study.redoes.is_empty(), "{name}");
            assert!(!study.claims.is_empty(), "{name}");
            file.plans().unwrap_or_else(|failure| panic!("{failure}"));
        }
    }

    #[test]
    fn plans_refuses_unknown_part_with_line_and_column() {
        let text = "title = 'x'\npaper = 'y'\nredoes = 'z'\nplan = { on = 'lab:rt', probes = \
                    ['cylic'] }\naxis = [{ name = 'a', each = [{ label = 'b' }] }]\nfigure = []\n";
        let refused = |from: &str, to: &str| {
            let made = read("mine.toml", None, text.replacen(from, to, 1)).unwrap().plans();
            made.unwrap_err().to_string()
        };
        assert_eq!(
            refused("", ""),
            "mine.toml, line 4, column 35: there is no probe 'cylic': did you mean cyclic?"
        );
        let said = refused("lab:rt", "lab:rtt");
        assert!(
            said.starts_with("mine.toml, line 4, column 15: there is no profile 'rtt'"),
            "{said}"
        );
        let said = refused("on = 'lab:rt', ", "");
        assert!(said.contains("the cell b has no target"), "{said}");
        let text = text.replace("cylic", "cyclic");
        let two =
            text.replace("{ label = 'b' }", "{ label = 'b' }, { label = 'c', on = 'native' }");
        let said = read("mine.toml", None, two).unwrap().plans().unwrap_err().to_string();
        assert!(said.contains("native is another kind of target than lab:rt"), "{said}");
    }

    #[test]
    fn study_cannot_start_commands() {
        let text = "title = 'x'\npaper = 'y'\nredoes = 'z'\nplan = { on = 'native', probes = \
                    ['cyclic'], loads = ['exec:sh -c true'] }\naxis = [{ name = 'a', each = \
                    [{ label = 'b' }] }]\nfigure = []\n";
        let plans = |text: &str| read("theirs.toml", None, text.to_owned()).unwrap().plans();
        let said = plans(text).unwrap_err().to_string();
        assert!(said.contains("a study can't start 'sh -c true'"), "{said}");
        assert!(plans(&text.replace(":sh -c true", "")).is_ok());
        let scanned = |scan: &str| {
            let scan = format!("scans = ['{scan}']");
            plans(&text.replace("probes = ['cyclic'], loads = ['exec:sh -c true']", &scan))
        };
        for scan in ["program:reboot", "program:command=./x.sh"] {
            let said = scanned(scan).unwrap_err().to_string();
            assert!(said.contains("line 4") && said.contains("a study can't start"), "{said}");
        }
        assert!(scanned("exec").is_ok());
    }
}
