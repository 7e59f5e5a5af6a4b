//! Limits on comparisons: claims over the figures of the second side and, as `baseline`, the same
//! figures of the first, that must not hold.

use super::judging::BEYOND;
use super::{Comparison, Latency, Method, Row};
use crate::study::claim::{Claim, ClaimVerdict, Fault, NamedValue};
use crate::time::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// A claim that must not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The text as written.
    pub text: String,
    claim: Claim,
}

/// The result of checking a limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedLimit {
    /// The text as written.
    pub limit: String,
    /// The result.
    pub outcome: Outcome,
    /// The compared values, or what is missing, in words.
    pub ground: String,
}

/// Whether a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The claim does not hold: the limit is kept.
    Within,
    /// The claim holds: the limit is exceeded.
    Over,
    /// A figure has no value.
    NotMeasured,
}

/// A figure by name, and the reason if it has no value.
struct LimitFigure {
    known: NamedValue,
    missing: &'static str,
    /// The detection limit, where the value is only what was found.
    none_above: Option<Nanos>,
}

const TOO_FEW: &str = "fewer than ten samples are above it";
const UNEQUAL: &str = "maxima of unequal numbers of samples are not comparable";
const NOT_JUDGED: &str = "it was not judged";

impl Limit {
    /// Parses a limit.
    pub fn read(text: &str) -> Result<Limit, Fault> {
        let claim = Claim::read(text)?.with_baseline()?;
        Ok(Limit { text: text.to_owned(), claim })
    }
}

impl Comparison {
    /// Checks these limits. A limit over an unknown figure is not measured. An error gives the
    /// index of the limit and what is wrong with it.
    pub fn check_limits(&self, limits: &[Limit]) -> Result<Vec<CheckedLimit>, (usize, Fault)> {
        let figures = self.figures();
        let limits = limits.iter().enumerate();
        limits.map(|(nth, one)| self.check(one, &figures).map_err(|fault| (nth, fault))).collect()
    }

    fn check(&self, limit: &Limit, figures: &[LimitFigure]) -> Result<CheckedLimit, Fault> {
        let checked = |(outcome, ground)| {
            let limit = limit.text.clone();
            Ok(CheckedLimit { limit, outcome, ground })
        };
        let known: Vec<NamedValue> = figures.iter().map(|figure| figure.known.clone()).collect();
        if let Some(fault) = limit.claim.unknown(&known) {
            let ground = self.unmatched.iter().fold(fault.why, |why, one| why + "; " + one);
            return checked((Outcome::NotMeasured, ground));
        }
        limit.claim.check(&known)?;
        if let Some(lost) = self.lost_for(&limit.claim, &known) {
            return checked((Outcome::NotMeasured, lost));
        }
        checked(judge(&limit.claim, figures))
    }

    /// Says how many runs that the claim depends on lost a load, a measured CPU or a setting, if any did.
    fn lost_for(&self, claim: &Claim, known: &[NamedValue]) -> Option<String> {
        let is_of_first = |name: &str| {
            name.starts_with("baseline.") || name.split('.').any(|word| word == "ratio")
        };
        let mut of_first = known.iter().filter(|one| is_of_first(&one.name));
        let needs_first = of_first.any(|one| claim.uses(&one.name));
        self.lost_runs(needs_first)
    }

    /// Says how many runs of B and, if `also_a`, of A lost a load, a measured CPU or a setting, if any did.
    pub fn lost_runs(&self, also_a: bool) -> Option<String> {
        let (a, b) = self.lost_part;
        let sides = [("A", if also_a { a } else { 0 }), ("B", b)].into_iter();
        let words = sides.filter(|(_, lost)| *lost > 0).map(|(side, lost)| {
            let runs = if lost == 1 { "run" } else { "runs" };
            format!("{lost} {runs} of {side} lost a load, a measured CPU or a setting")
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    fn figures(&self) -> Vec<LimitFigure> {
        let mut figures = Vec::new();
        let exact = self.design.method == Method::Exact;
        let latencies = self.latencies.iter().zip(self.latency_names());
        latencies.for_each(|(latency, name)| add_latency(latency, &name, exact, &mut figures));
        for (call, (a, b)) in &self.greatest {
            for ((name, a), (_, b)) in a.iter().zip(b) {
                let name = format!("scan.{call}.{}", slug(name));
                for (name, found) in [(name.clone(), b), (format!("baseline.{name}"), a)] {
                    let none_above = found.none_above();
                    figures.push(LimitFigure { none_above, ..time(name, found.time, "") });
                }
            }
        }
        figures
    }

    /// Returns the name of each latency: its probe; with the end of its span, where a probe has
    /// several spans; with a number, where names still coincide.
    pub fn latency_names(&self) -> Vec<String> {
        let name = |latency: &Latency| {
            let spans = self.latencies.iter();
            let several = spans.clone().any(|l| l.probe == latency.probe && l.span != latency.span);
            let probe = latency.probe.clone();
            if several { format!("{probe}.{}", slug(&latency.span.1)) } else { probe }
        };
        numbered(self.latencies.iter().map(name))
    }
}

impl LimitFigure {
    /// Returns its name, and why it has no value.
    fn without_value(&self) -> String {
        let why = self.none_above.map(|limit| format!("none found above {limit}"));
        format!("{} ({})", self.known.name, why.as_deref().unwrap_or(self.missing))
    }
}

/// Most figures with a detection limit in one claim.
const MOST_UNSURE: usize = 10;

/// Judges a claim, with the compared values in words. A figure with a detection limit is taken at both
/// of its ends: if the ends differ in outcome, the limit is not measured.
fn judge(claim: &Claim, figures: &[LimitFigure]) -> (Outcome, String) {
    let is_unsure = |one: &LimitFigure| one.none_above.is_some() && claim.uses(&one.known.name);
    let unsure: Vec<usize> = (0..figures.len()).filter(|nth| is_unsure(&figures[*nth])).collect();
    let at = |ends: u32| {
        let mut known: Vec<NamedValue> = figures.iter().map(|one| one.known.clone()).collect();
        for (_, nth) in unsure.iter().enumerate().filter(|(bit, _)| (ends >> bit) & 1 == 1) {
            known[*nth].value = figures[*nth].none_above.map(real);
        }
        claim.judge(&known)
    };
    let all = (1 << unsure.len().min(MOST_UNSURE)) - 1;
    let mut judgement = at(all);
    if let ClaimVerdict::NotMeasured(missing) = &judgement.verdict {
        return (Outcome::NotMeasured, without(missing, figures));
    }
    let outcome = outcome_of(&judgement.verdict);
    let reasons: Vec<String> = unsure.iter().map(|nth| figures[*nth].without_value()).collect();
    let is_sure = (0..all).all(|ends| outcome_of(&at(ends).verdict) == outcome);
    if unsure.len() > MOST_UNSURE || !is_sure {
        return (Outcome::NotMeasured, format!("no value for {}", reasons.join(", ")));
    }
    let is_sure = |text: &String| unsure.iter().all(|nth| figures[*nth].known.name != *text);
    judgement.compared.retain(|(text, _)| is_sure(text));
    let mut ground = vec![judgement.ground()];
    ground.extend(reasons);
    ground.retain(|words| !words.is_empty());
    (outcome, ground.join(", "))
}

fn outcome_of(verdict: &ClaimVerdict) -> Outcome {
    match verdict {
        ClaimVerdict::Holds | ClaimVerdict::ByConstruction => Outcome::Over,
        ClaimVerdict::Differs | ClaimVerdict::NoLongerHolds => Outcome::Within,
        ClaimVerdict::NotMeasured(_) => Outcome::NotMeasured,
    }
}

fn numbered(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let numbered = names.map(|name| {
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name}.{times}") }
    });
    numbered.collect()
}

#[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
fn add_latency(latency: &Latency, name: &str, exact: bool, figures: &mut Vec<LimitFigure>) {
    let fair = latency.recorded.0 == latency.recorded.1;
    for (word, row) in named_rows(latency) {
        let full = format!("{name}.{word}");
        let few = row.beyond.is_some_and(|beyond| beyond < BEYOND) && !exact;
        let empty = latency.recorded.0.min(latency.recorded.1) == 0;
        let missing = if few || empty { TOO_FEW } else { "" };
        figures.push(time(full.clone(), row.b, missing));
        let unequal = row.name == "max" && !fair && missing.is_empty();
        let missing = if unequal { UNEQUAL } else { missing };
        figures.push(time(format!("baseline.{full}"), row.a, missing));
        let judged = row.judged.as_ref();
        if row.beyond.is_some() {
            let of = |value: Option<f64>| judged.and(value);
            // If times are exactly repeatable there is one ratio, and no interval around it.
            let sure = of(row.ratio).filter(|_| exact);
            let ends = judged.and_then(|judged| judged.ratio);
            let [low, high] = [ends.map(|ends| ends.low), ends.map(|ends| ends.high)];
            figures.push(number(format!("{full}.ratio"), of(row.ratio)));
            figures.push(number(format!("{full}.ratio.low"), low.or(sure)));
            figures.push(number(format!("{full}.ratio.high"), high.or(sure)));
        }
    }
    let counts = [("recorded", latency.recorded), ("missed", latency.missed)];
    for (what, (a, b)) in counts {
        figures.push(number(format!("{name}.{what}"), Some(b as f64)));
        figures.push(number(format!("baseline.{name}.{what}"), Some(a as f64)));
    }
}

/// Returns the rows by name. Where no period was missed, the corrected quantiles are the recorded
/// ones.
fn named_rows(latency: &Latency) -> Vec<(String, &Row)> {
    let rows = latency.rows.iter();
    let named = rows.clone().map(|row| (row.name.replace(' ', "."), row));
    let corrected = rows.clone().any(|row| row.name.starts_with("corrected "));
    let same = rows.filter(|row| !corrected && row.name.starts_with('p'));
    named.chain(same.map(|row| (format!("corrected.{}", row.name), row))).collect()
}

fn time(name: String, time: Nanos, missing: &'static str) -> LimitFigure {
    let value = missing.is_empty().then(|| real(time));
    LimitFigure { known: NamedValue { name, time: 1, value }, missing, none_above: None }
}

#[expect(clippy::cast_precision_loss, reason = "a latency of 2^53 ns is 104 days long")]
fn real(time: Nanos) -> f64 {
    time.0 as f64
}

fn number(name: String, value: Option<f64>) -> LimitFigure {
    let known = NamedValue { name, time: 0, value };
    LimitFigure { known, missing: NOT_JUDGED, none_above: None }
}

fn without(missing: &[String], figures: &[LimitFigure]) -> String {
    let why = |name: &String| {
        let figure = figures.iter().find(|figure| figure.known.name == *name);
        figure.map_or_else(|| name.clone(), LimitFigure::without_value)
    };
    format!("no value for {}", missing.iter().map(why).collect::<Vec<_>>().join(", "))
}

/// Turns a name into a word of a limit: letters, digits and hyphens.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}
