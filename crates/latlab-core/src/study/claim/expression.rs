//! Values in claims: what they are made of, of what kind they are, and what they come to.

use super::super::quantity::Quantity;
use super::{Fault, Known, same};
use crate::suggest;
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Value(Quantity),
    Result { name: String, at: usize },
    Of { operation: Operation, at: usize, sides: Box<[Expression; 2]> },
    Fold { fold: Fold, at: usize, all: Vec<Expression> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    Max,
    Min,
    Mean,
}

impl Expression {
    /// What kind of value it has.
    pub(super) fn kind(&self, results: &[Known]) -> Result<i32, Fault> {
        match self {
            Expression::Value(value) => Ok(value.time),
            Expression::Result { name, at } => match named(name, results).as_slice() {
                [] => Err(unknown(name, *at, results)),
                [one] => Ok(one.time),
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
                            kinds.extend(several.iter().map(|result| result.time));
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
    pub(super) fn value(&self, results: &[Known]) -> Quantity {
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
    fn values(&self, results: &[Known]) -> Vec<Quantity> {
        match self {
            Expression::Result { name, .. } => values(name, results),
            other => vec![other.value(results)],
        }
    }

    /// The results in it that have no value.
    pub(super) fn missing(&self, results: &[Known], missing: &mut BTreeSet<String>) {
        for (name, _) in self.names() {
            let found = named(name, results);
            if found.is_empty() {
                missing.insert(name.to_owned());
            }
            let without = found.into_iter().filter(|known| known.value.is_none());
            missing.extend(without.map(|known| known.name.clone()));
        }
    }

    /// The first name in it that is none of the results, and which may have been meant.
    pub(super) fn unknown(&self, results: &[Known]) -> Option<Fault> {
        let mut names = self.names().into_iter();
        let (name, at) = names.find(|(name, _)| named(name, results).is_empty())?;
        Some(unknown(name, at, results))
    }

    /// Each name in it, and where it stands.
    fn names(&self) -> Vec<(&str, usize)> {
        match self {
            Expression::Value(_) => Vec::new(),
            Expression::Result { name, at } => vec![(name, *at)],
            Expression::Of { sides, .. } => sides.iter().flat_map(Expression::names).collect(),
            Expression::Fold { all, .. } => all.iter().flat_map(Expression::names).collect(),
        }
    }

    /// Shows each name, and where it stands, to `see`, which may change it.
    pub(super) fn each_name(&mut self, see: &mut impl FnMut(&mut String, usize)) {
        match self {
            Expression::Value(_) => {}
            Expression::Result { name, at } => see(name, *at),
            Expression::Of { sides, .. } => {
                sides.iter_mut().for_each(|side| side.each_name(see));
            }
            Expression::Fold { all, .. } => all.iter_mut().for_each(|one| one.each_name(see)),
        }
    }

    pub(super) fn has_result(&self) -> bool {
        !self.names().is_empty()
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
fn named<'a>(name: &str, results: &'a [Known]) -> Vec<&'a Known> {
    results.iter().filter(|known| fits(name, &known.name)).collect()
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

fn values(name: &str, results: &[Known]) -> Vec<Quantity> {
    let value = |known: &Known| {
        let value = known.value.unwrap_or(f64::NAN);
        Quantity { value, time: known.time }
    };
    named(name, results).into_iter().map(value).collect()
}

fn unknown(name: &str, at: usize, results: &[Known]) -> Fault {
    let names: Vec<&str> = results.iter().map(|known| known.name.as_str()).collect();
    let near = suggest::nearest(name, &names);
    let hint = match near.as_slice() {
        [] => format!("one is called {}", names.first().unwrap_or(&"nothing")),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    let minus = if name.contains('-') { " (a minus sign has spaces around it)" } else { "" };
    Fault { at, why: format!("there is no result '{name}': {hint}{minus}") }
}
