//! Claims: comparisons of results, as a study writes them: `390ms <= rt.worst < 2 * other.worst`.
//!
//! Numbers have the units of times or none; `85%` is 0.85. A result is named by its cell and its
//! figure, with dots between; a `*` stands for any one word of a name, within `max(…)`, `min(…)` and
//! `mean(…)`. Comparisons may be chained and joined by `and`. A minus sign has spaces around it, as
//! names may have hyphens.

mod parse;
mod token;

#[cfg(test)]
mod tests;

use super::quantity::Quantity;
use crate::suggest;
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
}

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Value(Quantity),
    Result { name: String, at: usize },
    Of { operation: Operation, at: usize, sides: Box<[Expression; 2]> },
    Fold { fold: Fold, at: usize, all: Vec<Expression> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fold {
    Max,
    Min,
    Mean,
}

/// Every result that a study has a name for, of what kind it is, and its value where it is known.
pub type Results = [(String, i32, Option<f64>)];

/// What became of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is so.
    Holds,
    /// It is not.
    Differs,
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

    /// Refuses names that are none, and values that can't be added or compared.
    pub fn check(&self, results: &Results) -> Result<(), Fault> {
        for chain in &self.0 {
            let first = chain.first.value.kind(results)?;
            for (_, side) in &chain.then {
                same(first, side.value.kind(results)?, side.at)?;
            }
        }
        Ok(())
    }

    /// Whether it is so, as far as it can be told.
    pub fn judge(&self, results: &Results) -> Judgement {
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

    fn holds(&self, results: &Results) -> bool {
        let mut before = self.first.value.value(results).value;
        self.then.iter().all(|(order, side)| {
            let now = side.value.value(results).value;
            let holds = match order {
                Order::Less => before < now,
                Order::AtMost => before <= now,
                Order::More => before > now,
                Order::AtLeast => before >= now,
            };
            before = now;
            holds
        })
    }
}

impl Expression {
    /// What kind of value it has.
    fn kind(&self, results: &Results) -> Result<i32, Fault> {
        match self {
            Expression::Value(value) => Ok(value.time),
            Expression::Result { name, at } => match named(name, results).as_slice() {
                [] => Err(unknown(name, *at, results)),
                [one] => Ok(one.1),
                several => Err(Fault {
                    at: *at,
                    why: format!(
                        "{name} stands for {} results: write max({name}), min({name}) or mean({name})",
                        several.len()
                    ),
                }),
            },
            Expression::Of { operation, at, sides } => {
                let [left, right] = sides.as_ref();
                let (left, right) = (left.kind(results)?, right.kind(results)?);
                match operation {
                    Operation::Plus | Operation::Minus => {
                        same(left, right, *at)?;
                        Ok(left)
                    }
                    Operation::Times => Ok(left.saturating_add(right)),
                    Operation::Over => Ok(left.saturating_sub(right)),
                }
            }
            Expression::Fold { at, all, .. } => {
                let mut kinds = Vec::new();
                for one in all {
                    match one {
                        Expression::Result { name, at } => {
                            let several = named(name, results);
                            if several.is_empty() {
                                return Err(unknown(name, *at, results));
                            }
                            kinds.extend(several.iter().map(|result| result.1));
                        }
                        other => kinds.push(other.kind(results)?),
                    }
                }
                let first = kinds.first().copied().unwrap_or_default();
                kinds.iter().try_for_each(|kind| same(first, *kind, *at))?;
                Ok(first)
            }
        }
    }

    /// Its value; what is missing counts as no number.
    fn value(&self, results: &Results) -> Quantity {
        match self {
            Expression::Value(value) => *value,
            Expression::Result { name, .. } => {
                values(name, results).first().copied().unwrap_or(Quantity::number(f64::NAN))
            }
            Expression::Of { operation, sides, .. } => {
                let [left, right] = [&sides[0], &sides[1]].map(|side| side.value(results));
                match operation {
                    Operation::Plus => left + right,
                    Operation::Minus => left - right,
                    Operation::Times => left * right,
                    Operation::Over => left / right,
                }
            }
            Expression::Fold { fold, all, .. } => {
                let all: Vec<Quantity> = all.iter().flat_map(|one| one.values(results)).collect();
                fold.of(&all)
            }
        }
    }

    /// Its values, of which a name with a `*` has several.
    fn values(&self, results: &Results) -> Vec<Quantity> {
        match self {
            Expression::Result { name, .. } => values(name, results),
            other => vec![other.value(results)],
        }
    }

    fn missing(&self, results: &Results, missing: &mut BTreeSet<String>) {
        match self {
            Expression::Value(_) => {}
            Expression::Result { name, .. } => {
                let found = named(name, results);
                if found.is_empty() {
                    missing.insert(name.clone());
                }
                let without = found.into_iter().filter(|(_, _, value)| value.is_none());
                missing.extend(without.map(|(name, _, _)| name.clone()));
            }
            Expression::Of { sides, .. } => {
                sides.iter().for_each(|side| side.missing(results, missing));
            }
            Expression::Fold { all, .. } => {
                for one in all {
                    one.missing(results, missing);
                }
            }
        }
    }

    fn has_result(&self) -> bool {
        match self {
            Expression::Value(_) => false,
            Expression::Result { .. } => true,
            Expression::Of { sides, .. } => sides.iter().any(Expression::has_result),
            Expression::Fold { all, .. } => all.iter().any(Expression::has_result),
        }
    }
}

impl Fold {
    fn of(self, all: &[Quantity]) -> Quantity {
        let time = all.first().map_or(0, |first| first.time);
        let values = all.iter().map(|one| one.value);
        #[expect(clippy::cast_precision_loss, reason = "nobody writes 2^52 names")]
        let value = match self {
            Fold::Max => values.fold(f64::NEG_INFINITY, f64::max),
            Fold::Min => values.fold(f64::INFINITY, f64::min),
            Fold::Mean => values.sum::<f64>() / all.len() as f64,
        };
        Quantity { value, time }
    }
}

/// The results that a name stands for.
fn named<'a>(name: &str, results: &'a Results) -> Vec<&'a (String, i32, Option<f64>)> {
    results.iter().filter(|(known, _, _)| fits(name, known)).collect()
}

/// Whether each word is the same, or a `*` stands in its place.
fn fits(name: &str, known: &str) -> bool {
    let (mut words, mut there) = (name.split('.'), known.split('.'));
    loop {
        match (words.next(), there.next()) {
            (None, None) => return true,
            (Some(word), Some(known)) if word == "*" || word == known => {}
            _ => return false,
        }
    }
}

fn values(name: &str, results: &Results) -> Vec<Quantity> {
    let value = |(_, time, value): &(String, i32, Option<f64>)| Quantity {
        value: value.unwrap_or(f64::NAN),
        time: *time,
    };
    named(name, results).into_iter().map(value).collect()
}

fn unknown(name: &str, at: usize, results: &Results) -> Fault {
    let names: Vec<&str> = results.iter().map(|(name, _, _)| name.as_str()).collect();
    let near = suggest::nearest(name, &names);
    let hint = match near.as_slice() {
        [] => format!("a result is called CELL.FIGURE, as {}", names.first().unwrap_or(&"none")),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    let minus = if name.contains('-') { " (a minus sign has spaces around it)" } else { "" };
    Fault { at, why: format!("there is no result '{name}': {hint}{minus}") }
}

fn same(one: i32, other: i32, at: usize) -> Result<(), Fault> {
    if one == other {
        return Ok(());
    }
    let (one, other) = (Quantity::kind(one), Quantity::kind(other));
    let why = format!("{one} and {other} can't be compared or added: is a unit missing?");
    Err(Fault { at, why })
}
