//! Expressions in claims: their dimension and their value.

use super::super::quantity::Quantity;
use super::{Fault, NamedValue, same};
use crate::suggest;
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Value(Quantity),
    Result { name: String, at: usize },
    Binary { operation: Operation, at: usize, sides: Box<[Expression; 2]> },
    Aggregate { function: Function, at: usize, all: Vec<Expression> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Plus,
    Minus,
    Times,
    Divided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Max,
    Min,
    Mean,
}

impl Expression {
    /// Returns its dimension: the power of time.
    pub(super) fn kind(&self, results: &[NamedValue]) -> Result<i32, Fault> {
        match self {
            Expression::Value(value) => Ok(value.time),
            Expression::Result { name, at } => match named(name, results).as_slice() {
                [] => Err(unknown(name, *at, results)),
                [one] => Ok(one.time),
                several => Err(Fault {
                    at: *at,
                    why: format!(
                        "{name} stands for {} results: write max({name}), min({name}) or \
                         mean({name})",
                        several.len()
                    ),
                }),
            },
            Expression::Binary { operation, at, sides } => {
                let [left, right] = sides.as_ref();
                let (left, right) = (left.kind(results)?, right.kind(results)?);
                match operation {
                    Operation::Plus | Operation::Minus => {
                        same(left, right, *at)?;
                        Ok(left)
                    }
                    Operation::Times => Ok(left.saturating_add(right)),
                    Operation::Divided => Ok(left.saturating_sub(right)),
                }
            }
            Expression::Aggregate { at, all, .. } => {
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

    /// Returns its value; a missing result is NaN.
    pub(super) fn value(&self, results: &[NamedValue]) -> Quantity {
        match self {
            Expression::Value(value) => *value,
            Expression::Result { name, .. } => {
                values(name, results).first().copied().unwrap_or(Quantity::number(f64::NAN))
            }
            Expression::Binary { operation, sides, .. } => {
                let [left, right] = [&sides[0], &sides[1]].map(|side| side.value(results));
                match operation {
                    Operation::Plus => left + right,
                    Operation::Minus => left - right,
                    Operation::Times => left * right,
                    Operation::Divided => left / right,
                }
            }
            Expression::Aggregate { function, all, .. } => {
                let all: Vec<Quantity> = all.iter().flat_map(|one| one.values(results)).collect();
                function.of(&all)
            }
        }
    }

    /// Returns its values: several for a name with a `*`.
    fn values(&self, results: &[NamedValue]) -> Vec<Quantity> {
        match self {
            Expression::Result { name, .. } => values(name, results),
            other => vec![other.value(results)],
        }
    }

    /// Collects the results in it that have no value.
    pub(super) fn missing(&self, results: &[NamedValue], missing: &mut BTreeSet<String>) {
        for (name, _) in self.names() {
            let found = named(name, results);
            if found.is_empty() {
                missing.insert(name.to_owned());
            }
            let without = found.into_iter().filter(|known| known.value.is_none());
            missing.extend(without.map(|known| known.name.clone()));
        }
    }

    /// Returns an error for the first unknown name in it.
    pub(super) fn unknown(&self, results: &[NamedValue]) -> Option<Fault> {
        let mut names = self.names().into_iter();
        let (name, at) = names.find(|(name, _)| named(name, results).is_empty())?;
        Some(unknown(name, at, results))
    }

    /// Whether a name in it stands for the result of this name.
    pub(super) fn uses(&self, result: &str) -> bool {
        self.names().iter().any(|(name, _)| fits(name, result))
    }

    /// Returns the names in it, and their byte offsets.
    fn names(&self) -> Vec<(&str, usize)> {
        match self {
            Expression::Value(_) => Vec::new(),
            Expression::Result { name, at } => vec![(name, *at)],
            Expression::Binary { sides, .. } => sides.iter().flat_map(Expression::names).collect(),
            Expression::Aggregate { all, .. } => all.iter().flat_map(Expression::names).collect(),
        }
    }

    /// Calls `visit` for each name and its byte offset; it may change the name.
    pub(super) fn each_name(&mut self, visit: &mut impl FnMut(&mut String, usize)) {
        match self {
            Expression::Value(_) => {}
            Expression::Result { name, at } => visit(name, *at),
            Expression::Binary { sides, .. } => {
                let [left, right] = sides.as_mut();
                left.each_name(visit);
                right.each_name(visit);
            }
            Expression::Aggregate { all, .. } => {
                for one in all {
                    one.each_name(visit);
                }
            }
        }
    }

    pub(super) fn has_result(&self) -> bool {
        !self.names().is_empty()
    }
}

impl Function {
    fn of(self, all: &[Quantity]) -> Quantity {
        let time = all.first().map_or(0, |first| first.time);
        let values = all.iter().map(|one| one.value);
        // `f64::max` and `f64::min` skip NaN, such as 0 / 0.
        if values.clone().any(|value| !value.is_finite()) {
            return Quantity { value: f64::NAN, time };
        }
        #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 names")]
        let value = match self {
            Function::Max => values.fold(f64::NEG_INFINITY, f64::max),
            Function::Min => values.fold(f64::INFINITY, f64::min),
            Function::Mean => values.sum::<f64>() / all.len() as f64,
        };
        Quantity { value, time }
    }
}

/// Returns the results that a name stands for.
fn named<'a>(name: &str, results: &'a [NamedValue]) -> Vec<&'a NamedValue> {
    results.iter().filter(|known| fits(name, &known.name)).collect()
}

/// Whether the words of both are equal; a `*` equals any word.
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

fn values(name: &str, results: &[NamedValue]) -> Vec<Quantity> {
    let value = |known: &NamedValue| {
        let value = known.value.unwrap_or(f64::NAN);
        Quantity { value, time: known.time }
    };
    named(name, results).into_iter().map(value).collect()
}

fn unknown(name: &str, at: usize, results: &[NamedValue]) -> Fault {
    let names: Vec<&str> = results.iter().map(|known| known.name.as_str()).collect();
    let suffix = format!(".{name}");
    let longer = names.iter().filter(|known| known.ends_with(&suffix)).take(3).copied();
    let longer: Vec<&str> = longer.collect();
    let near = if longer.is_empty() { suggest::nearest(name, &names) } else { longer };
    let hint = match near.as_slice() {
        [] => format!("one is called {}", names.first().unwrap_or(&"nothing")),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    let minus = if name.contains('-') { " (a minus sign needs spaces around it)" } else { "" };
    Fault { at, why: format!("unknown result '{name}': {hint}{minus}") }
}
