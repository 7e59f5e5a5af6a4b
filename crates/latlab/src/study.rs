//! Studies: which there are, and the plans that come of them.

use crate::call::CALLS;
use crate::failure::{Failure, Result, failed};
use crate::load::LOADS;
use crate::probe::{self, PROBES};
use crate::{kernel, mechanism, profile, registry, target};
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Part, Plan, ScanPlan, Setting};
use latlab_core::study::{self, Cell, Study, Words, pieces};
use latlab_core::suggest;
use latlab_core::time::Nanos;
use latlab_sys::knob::Knob;
use std::path::{Path, PathBuf};

// `STUDIES`: name and text of every file in `study/`, by name.
include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// A study and where it is from.
#[derive(Debug)]
pub(crate) struct Source {
    /// The name or the path that the user gave.
    pub(crate) name: String,
    /// The file that it was read of; none, if it comes with latlab.
    pub(crate) file: Option<PathBuf>,
    text: String,
    pub(crate) study: Study,
}

/// Every study that comes with latlab, by name.
pub(crate) fn shipped() -> Vec<(&'static str, Study)> {
    let read = |text| Study::read(text).expect("the tests have read it");
    STUDIES.iter().map(|(name, text)| (*name, read(text))).collect()
}

/// The study behind what the user typed: a name, or the path of a file.
pub(crate) fn find(name: &str) -> Result<Source> {
    if let Some((_, text)) = STUDIES.iter().find(|(shipped, _)| *shipped == name) {
        return read(name, None, (*text).to_owned());
    }
    if name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "toml") {
        let text = std::fs::read_to_string(name).map_err(|e| failed(name, e))?;
        return read(name, Some(name.into()), text);
    }
    let names: Vec<&str> = STUDIES.iter().map(|(name, _)| *name).collect();
    let hint = suggest::hint(name, &names);
    Err(Failure::Failed(format!(
        "there is no study '{name}': {hint} (a file of yours ends in .toml)"
    )))
}

fn read(name: &str, file: Option<PathBuf>, text: String) -> Result<Source> {
    match Study::read(&text) {
        Ok(study) => Ok(Source { name: name.to_owned(), file, text, study }),
        Err(fault) => Err(misplaced(name, &text, fault.at, &fault.why)),
    }
}

/// What is wrong in a file, and where.
fn misplaced(name: &str, text: &str, at: usize, why: &str) -> Failure {
    let (line, column) = study::place(text, at);
    Failure::Failed(format!("{name}, line {line}, column {column}: {why}"))
}

impl Source {
    /// The plans of each cell, one for each repetition; refuses parts that there are not.
    pub(crate) fn plans(&self) -> Result<Vec<Vec<Plan>>> {
        let plans = self.study.cells.iter().map(|cell| self.plans_of(cell));
        let plans = plans.collect::<Result<Vec<_>>>()?;
        let kind = |on: &Words| on.text.split(':').next().unwrap_or_default().to_owned();
        let targets: Vec<&Words> =
            self.study.cells.iter().filter_map(|cell| cell.terms.on.as_ref()).collect();
        if let Some(other) = targets.iter().find(|on| kind(on) != kind(targets[0])) {
            let why = format!(
                "{} is another kind of target than {}: make two studies of them",
                other.text, targets[0].text
            );
            return Err(self.misplaced(other.at, &why));
        }
        match self.study.unmeasured() {
            Some(fault) => Err(self.misplaced(fault.at, &fault.why)),
            None => Ok(plans),
        }
    }

    fn plans_of(&self, cell: &Cell) -> Result<Vec<Plan>> {
        let terms = &cell.terms;
        let lacks =
            |what: &str| Err(self.misplaced(cell.at, &format!("the cell {} {what}", cell.label)));
        let Some(on) = &terms.on else {
            return lacks("does not say on which target: on = \"lab:rt\"");
        };
        self.at(on, check_target(&on.text))?;
        let probes = self
            .parts(terms.probes.as_deref(), |text| registry::parse("probe", PROBES, text, &[]))?;
        let in_instructions = on.text.starts_with("lab:");
        let scan = |call| ScanPlan::usual(call, in_instructions);
        let calls =
            self.parts(terms.scans.as_deref(), |text| registry::parse("call", CALLS, text, &[]))?;
        if probes.is_empty() && calls.is_empty() {
            return lacks("has neither a probe nor a scan: probes = [\"cyclic\"]");
        }
        let length = terms.length.unwrap_or(Length::For(Nanos::from_secs(10)));
        for (probe, words) in probes.iter().zip(terms.probes.iter().flatten()) {
            self.at(words, probe::check_length(probe, length))?;
        }
        let loads = |text: &str| registry::parse("load", LOADS, text, &[]);
        let settings = terms.settings.iter().flatten().map(|words| self.at(words, setting(words)));
        let adapt =
            terms.adapt.clone().flatten().map(|words| {
                self.at(&words, mechanism::names(&words.text).map_err(Failure::Failed))
            });
        let plan = Plan {
            probes,
            scans: calls.into_iter().map(scan).collect(),
            loads: self.parts(terms.loads.as_deref(), loads)?,
            warm_up: terms.warm_up.unwrap_or(Nanos::from_millis(200)),
            seed: terms.seed.unwrap_or_default(),
            settings: settings.collect::<Result<_>>()?,
            adapt: adapt.transpose()?.unwrap_or_default(),
            ..Plan::bare(&on.text, CpuList::default(), length)
        };
        // The seeds between are those of the pieces.
        let step = pieces::number(length, pieces::LONGEST);
        let repetition = |nth| Plan { seed: plan.seed.wrapping_add(nth * step), ..plan.clone() };
        Ok((0..u64::from(terms.repeat.unwrap_or(1))).map(repetition).collect())
    }

    fn parts(
        &self,
        all: Option<&[Words]>,
        parse: impl Fn(&str) -> Result<Part>,
    ) -> Result<Vec<Part>> {
        let all = all.unwrap_or_default().iter();
        all.map(|words| self.at(words, parse(&words.text))).collect()
    }

    /// What was made of some words, or what is wrong with them and where they stand.
    fn at<T>(&self, words: &Words, made: Result<T>) -> Result<T> {
        made.map_err(|failure| self.misplaced(words.at, &failure.to_string()))
    }

    fn misplaced(&self, at: usize, why: &str) -> Failure {
        misplaced(&self.name, &self.text, at, why)
    }
}

/// Refuses targets and profiles that there are not.
fn check_target(name: &str) -> Result<()> {
    target::find(name)?;
    match name.split_once(':') {
        Some(("lab" | "vm", name)) => profile::find(name, &kernel::added()?).map(drop),
        _ => Ok(()),
    }
}

fn setting(words: &Words) -> Result<Setting> {
    let missing = || Failure::Failed("it has no '=': write KNOB=VALUE".to_owned());
    let (knob, value) = words.text.split_once('=').ok_or_else(missing)?;
    if Knob::named(knob).is_none() {
        let why = format!("there is no knob '{knob}': see latlab list knobs");
        return Err(Failure::Failed(why));
    }
    Ok(Setting { knob: knob.to_owned(), value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_can_be_read_and_carried_out_and_names_its_paper() {
        for (name, _) in STUDIES {
            let source = find(name).unwrap_or_else(|failure| panic!("{failure}"));
            let study = &source.study;
            assert!(!study.paper.is_empty() && !study.redoes.is_empty(), "{name}");
            assert!(!study.claims.is_empty(), "{name}");
            source.plans().unwrap_or_else(|failure| panic!("{failure}"));
        }
    }

    #[test]
    fn a_part_that_there_is_not_is_refused_where_it_stands() {
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
        assert!(said.contains("the cell b does not say on which target"), "{said}");
        let text = text.replace("cylic", "cyclic");
        let two =
            text.replace("{ label = 'b' }", "{ label = 'b' }, { label = 'c', on = 'native' }");
        let said = read("mine.toml", None, two).unwrap().plans().unwrap_err().to_string();
        assert!(said.contains("native is another kind of target than lab:rt"), "{said}");
    }
}
