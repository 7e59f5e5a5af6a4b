//! Proofs in words, for text and pages.

use super::{Effect, Judged, JudgedFigure, Outcome, Proof, Proofs};
use crate::compare::by;
use crate::time::Nanos;

impl Proofs {
    /// Returns the proofs as sentences: the effect of each remedy, the causes without a remedy to
    /// try, and how to keep the helpful remedies, the best first. `shown` formats times.
    pub fn sentences(&self, shown: impl Fn(Nanos) -> String) -> Vec<String> {
        let tried = self.tried.iter().map(|proof| proof.sentence(&shown));
        let not_tried = self.not_tried.iter().map(|clause| format!("not tried: {clause}"));
        tried.chain(not_tried).chain(self.conclusion()).collect()
    }

    /// Returns what to do now: how to keep each remedy that helped, the best first.
    pub fn conclusion(&self) -> Vec<String> {
        let mut helped: Vec<&Proof> = self.tried.iter().filter(|proof| proof.helped()).collect();
        helped.sort_by(|a, b| a.best_ratio().total_cmp(&b.best_ratio()));
        if helped.is_empty() && !self.tried.is_empty() {
            let is_mixed = self.tried.iter().any(|proof| proof.effect() == Some(Effect::Mixed));
            let harm = if is_mixed { " without harm" } else { "" };
            return vec![format!("none of the remedies is shown to help{harm}")];
        }
        let keep = |proof: &Proof| {
            format!("to keep {}: {}", proof.remedy.words(), proof.remedy.for_good())
        };
        helped.into_iter().map(keep).collect()
    }
}

impl Proof {
    /// Returns what the remedy did. `shown` formats times.
    pub fn sentence(&self, shown: impl Fn(Nanos) -> String) -> String {
        let what = self.remedy.words();
        let judged = match &self.outcome {
            Outcome::Judged(judged) => judged,
            Outcome::Refused(why) if self.pairs == 0 => {
                return format!("{what} could not be made: {why}");
            }
            Outcome::Refused(why) => {
                let runs = if self.pairs == 1 { "pair" } else { "pairs" };
                return format!("{what} failed after {} {runs} of runs: {why}", self.pairs);
            }
        };
        let did = match judged.effect {
            Effect::Helped => " helped",
            Effect::NoneShown => ": no effect shown",
            Effect::Harmed => " made it worse",
            Effect::Mixed => " helped and harmed",
            Effect::Unknown => return format!("{what}: not known, too few runs"),
        };
        let shows_it = |figure: &&JudgedFigure| figure.effect != Effect::NoneShown;
        let any = judged.effect == Effect::NoneShown;
        let figures = judged.figures.iter().filter(|figure| any || shows_it(figure));
        let figures: Vec<String> = figures.map(|figure| figure.words(judged, &shown)).collect();
        format!("{what}{did}: {}", figures.join("; "))
    }

    /// The smallest ratio of the figures that it helped.
    fn best_ratio(&self) -> f64 {
        match &self.outcome {
            Outcome::Judged(judged) => {
                let helped = judged.figures.iter().filter(|one| one.effect == Effect::Helped);
                helped.map(|figure| figure.ratio).fold(1.0, f64::min)
            }
            Outcome::Refused(_) => 1.0,
        }
    }
}

impl JudgedFigure {
    fn words(&self, all: &Judged, shown: impl Fn(Nanos) -> String) -> String {
        let several = all.figures.iter().any(|other| other.probe != self.probe);
        let probe = if several { format!("{} ", self.probe) } else { String::new() };
        let interval = self.interval.map_or(String::new(), |interval| {
            format!(" ({} to {})", by(interval.low), by(interval.high))
        });
        let (without, with) = (shown(self.without), shown(self.with));
        format!("{probe}{} {without} → {with}, {}{interval}", self.name, by(self.ratio))
    }
}
