//! Claims: comparisons of results, as a study writes them: `390ms <= rt.worst < 2 * other.worst`.
//!
//! Numbers have the units of times or none; `85%` is 0.85. A result is named by its cell and its
//! figure, with dots between; a `*` stands for any one word of a name, within `max(…)`, `min(…)` and
//! `mean(…)`. Comparisons (`<`, `<=`, `>`, `>=`, and `==` for what was counted) may be chained and
//! joined by `and`. A minus sign has spaces around it, as names may have hyphens.

mod expression;
mod parse;
mod token;

#[cfg(test)]
mod tests;

use self::expression::Expression;
use super::quantity::Quantity;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// What is wrong with a text, and at which of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Fault {
    /// The byte at which it begins.
    pub at: usize,
    /// What is wrong there, and what was expected.
    pub why: String,
}

/// The word for a figure as it was before.
const BASELINE: &str = "baseline";

/// A claim, ready to be held against results.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim(Vec<Chain>);

/// Values, each compared with the next.
#[derive(Clone, Debug, PartialEq)]
struct Chain {
    first: Side,
    then: Vec<(Order, Side)>,
}

/// One side of a comparison, and how it is written.
#[derive(Clone, Debug, PartialEq)]
struct Side {
    text: String,
    at: usize,
    value: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
}

/// A result that a study has a name for.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Its cell and its figure, with dots between.
    pub name: String,
    /// What kind of value it is: the power of time.
    pub time: i32,
    /// The value, where it was measured.
    pub value: Option<f64>,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is so.
    Holds,
    /// It is not.
    Differs,
    /// It is not, as kernels of today have no more what it came from.
    NoMore,
    /// This is not known, so that nobody can tell.
    NotMeasured(Vec<String>),
}

/// A claim that was held against results.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What became of it.
    pub verdict: Verdict,
    /// What was compared: each side in which there is a result, as it is written, and its value.
    pub compared: Vec<(String, Quantity)>,
}

impl Claim {
    /// Reads a claim.
    pub fn read(text: &str) -> Result<Claim, Fault> {
        parse::claim(text)
    }

    /// The same with `baseline` for the figure that it is compared with, as it was before: of
    /// `rt.worst < baseline * 2` that is `baseline.rt.worst`.
    pub fn with_baseline(mut self) -> Result<Claim, Fault> {
        self.0.iter_mut().try_for_each(Chain::name_baseline)?;
        Ok(self)
    }

    /// Refuses names that are none, and values that can't be added or compared.
    pub fn check(&self, results: &[Known]) -> Result<(), Fault> {
        for chain in &self.0 {
            let first = chain.first.value.kind(results)?;
            for (_, side) in &chain.then {
                same(first, side.value.kind(results)?, side.at)?;
            }
        }
        Ok(())
    }

    /// The first name in it that is none of the results, and which may have been meant.
    pub fn unknown(&self, results: &[Known]) -> Option<Fault> {
        self.sides().find_map(|side| side.value.unknown(results))
    }

    /// Whether it is so, as far as it can be told.
    pub fn judge(&self, results: &[Known]) -> Judgement {
        let mut missing = BTreeSet::new();
        self.sides().for_each(|side| side.value.missing(results, &mut missing));
        if !missing.is_empty() {
            let verdict = Verdict::NotMeasured(missing.into_iter().collect());
            return Judgement { verdict, compared: Vec::new() };
        }
        let mut compared: Vec<(String, Quantity)> = Vec::new();
        for side in self.sides().filter(|side| side.value.has_result()) {
            let value = side.value.value(results);
            if !value.value.is_finite() {
                let verdict = Verdict::NotMeasured(vec![format!("{} (no number)", side.text)]);
                return Judgement { verdict, compared: Vec::new() };
            }
            if !compared.iter().any(|(text, _)| *text == side.text) {
                compared.push((side.text.clone(), value));
            }
        }
        let holds = self.0.iter().all(|chain| chain.holds(results));
        Judgement { verdict: if holds { Verdict::Holds } else { Verdict::Differs }, compared }
    }

    fn sides(&self) -> impl Iterator<Item = &Side> {
        self.0.iter().flat_map(Chain::sides)
    }
}

impl Chain {
    fn sides(&self) -> impl Iterator<Item = &Side> {
        std::iter::once(&self.first).chain(self.then.iter().map(|(_, side)| side))
    }

    fn name_baseline(&mut self) -> Result<(), Fault> {
        let (mut own, mut first) = (BTreeSet::new(), None);
        let mut sides: Vec<&mut Expression> = vec![&mut self.first.value];
        sides.extend(self.then.iter_mut().map(|(_, side)| &mut side.value));
        for side in &mut sides {
            side.each_name(&mut |name, at| match name.as_str() {
                BASELINE => first = first.or(Some(at)),
                other if !other.starts_with("baseline.") => {
                    own.insert(name.clone());
                }
                _ => {}
            });
        }
        let Some(at) = first else {
            return Ok(());
        };
        let mut own = own.into_iter();
        let (Some(own), None) = (own.next(), own.next()) else {
            let why = "baseline stands for the one figure that it is compared with: write which, \
                       as baseline.cyclic.p99";
            return Err(Fault { at, why: why.to_owned() });
        };
        for side in sides {
            side.each_name(&mut |name, _| {
                if name == BASELINE {
                    *name = format!("{BASELINE}.{own}");
                }
            });
        }
        Ok(())
    }

    fn holds(&self, results: &[Known]) -> bool {
        let mut before = self.first.value.value(results).value;
        self.then.iter().all(|(order, side)| {
            let now = side.value.value(results).value;
            let holds = match order {
                Order::Less => before < now,
                Order::AtMost => before <= now,
                Order::More => before > now,
                Order::AtLeast => before >= now,
                Order::Equal => before.partial_cmp(&now) == Some(Ordering::Equal),
            };
            before = now;
            holds
        })
    }
}

/// Refuses to compare or add what is not alike.
fn same(one: i32, other: i32, at: usize) -> Result<(), Fault> {
    if one == other {
        return Ok(());
    }
    let (one, other) = (Quantity::kind(one), Quantity::kind(other));
    let why = format!("{one} and {other} can't be compared or added: is a unit missing?");
    Err(Fault { at, why })
}
