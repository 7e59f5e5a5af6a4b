//! Claims: comparisons of results, as a study writes them: `390ms <= rt.worst < 2 * other.worst`.
//!
//! Numbers have units of time or none; `85%` is 0.85. A result is named by its cell and its figure,
//! joined by a dot. Within `max(…)`, `min(…)` and `mean(…)`, a `*` stands for any word of a name.
//! Comparisons (`<`, `<=`, `>`, `>=`, and `==` for counts) may be chained, and joined by `and`. A
//! minus sign needs spaces around it, since names may contain hyphens.

mod expression;
mod parse;
mod token;

#[cfg(test)]
mod tests;

use self::expression::Expression;
use super::quantity::Quantity;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// An error in a text, and its byte offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Fault {
    /// Byte offset.
    pub at: usize,
    /// The error, and what was expected.
    pub why: String,
}

/// The name of the figure of the first side in a comparison.
const BASELINE: &str = "baseline";

/// A parsed claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim(Vec<Chain>);

/// A chain of comparisons.
#[derive(Clone, Debug, PartialEq)]
struct Chain {
    first: Operand,
    then: Vec<(Relation, Operand)>,
}

/// One operand of a comparison, and its text.
#[derive(Clone, Debug, PartialEq)]
struct Operand {
    text: String,
    at: usize,
    value: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
}

/// A value that claims can refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedValue {
    /// Its name: cell and figure, joined by a dot.
    pub name: String,
    /// Its dimension: the power of time.
    pub time: i32,
    /// The value, if it was measured.
    pub value: Option<f64>,
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimVerdict {
    /// The results agree with the claim.
    Holds,
    /// The results agree with the claim, but the study's own set-up decided that.
    ByConstruction,
    /// The results differ from the claim.
    Differs,
    /// The results differ, because current kernels no longer have the cause.
    NoLongerHolds,
    /// These results are missing.
    NotMeasured(Vec<String>),
}

/// The verdict on a claim, and the values it is based on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The compared operands that contain a result: text and value.
    pub compared: Vec<(String, Quantity)>,
    /// In how many repetitions the results agree with the claim, and of how many; none if the cells
    /// were not repeated equally often.
    pub repetitions: Option<(usize, usize)>,
}

impl Claim {
    /// Parses a claim.
    pub fn read(text: &str) -> Result<Claim, Fault> {
        parse::claim(text)
    }

    /// Replaces `baseline` by the baseline of the figure in the same comparison: in `rt.worst <
    /// baseline * 2` it is `baseline.rt.worst`.
    pub fn with_baseline(mut self) -> Result<Claim, Fault> {
        self.0.iter_mut().try_for_each(Chain::name_baseline)?;
        Ok(self)
    }

    /// Refuses unknown names, and values of different dimensions that are added or compared.
    pub fn check(&self, results: &[NamedValue]) -> Result<(), Fault> {
        for chain in &self.0 {
            let first = chain.first.value.kind(results)?;
            for (_, operand) in &chain.then {
                same(first, operand.value.kind(results)?, operand.at)?;
            }
        }
        Ok(())
    }

    /// Returns an error for the first unknown name, with the nearest known ones.
    pub fn unknown(&self, results: &[NamedValue]) -> Option<Fault> {
        self.operands().find_map(|operand| operand.value.unknown(results))
    }

    /// Whether the result of this name is in the claim.
    pub fn uses(&self, name: &str) -> bool {
        self.operands().any(|operand| operand.value.uses(name))
    }

    /// Judges the claim by these results.
    pub fn judge(&self, results: &[NamedValue]) -> Judgement {
        let mut missing = BTreeSet::new();
        self.operands().for_each(|operand| operand.value.missing(results, &mut missing));
        if !missing.is_empty() {
            let verdict = ClaimVerdict::NotMeasured(missing.into_iter().collect());
            return Judgement { verdict, compared: Vec::new(), repetitions: None };
        }
        let mut compared: Vec<(String, Quantity)> = Vec::new();
        for operand in self.operands().filter(|operand| operand.value.has_result()) {
            let value = operand.value.value(results);
            if !value.value.is_finite() {
                let verdict =
                    ClaimVerdict::NotMeasured(vec![format!("{} (not a number)", operand.text)]);
                return Judgement { verdict, compared: Vec::new(), repetitions: None };
            }
            if !compared.iter().any(|(text, _)| *text == operand.text) {
                compared.push((operand.text.clone(), value));
            }
        }
        let holds = self.0.iter().all(|chain| chain.holds(results));
        Judgement {
            verdict: if holds { ClaimVerdict::Holds } else { ClaimVerdict::Differs },
            compared,
            repetitions: None,
        }
    }

    fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.0.iter().flat_map(Chain::operands)
    }
}

impl Chain {
    fn operands(&self) -> impl Iterator<Item = &Operand> {
        std::iter::once(&self.first).chain(self.then.iter().map(|(_, operand)| operand))
    }

    fn name_baseline(&mut self) -> Result<(), Fault> {
        let (mut own, mut first) = (BTreeSet::new(), None);
        let mut operands: Vec<&mut Expression> = vec![&mut self.first.value];
        operands.extend(self.then.iter_mut().map(|(_, operand)| &mut operand.value));
        for operand in &mut operands {
            operand.each_name(&mut |name, at| match name.as_str() {
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
            let why = "baseline stands for the only figure of its comparison, and there are none \
                       or several: write it in full, such as baseline.cyclic.p99";
            return Err(Fault { at, why: why.to_owned() });
        };
        for operand in operands {
            operand.each_name(&mut |name, _| {
                if name == BASELINE {
                    *name = format!("{BASELINE}.{own}");
                }
            });
        }
        Ok(())
    }

    fn holds(&self, results: &[NamedValue]) -> bool {
        let mut before = self.first.value.value(results).value;
        self.then.iter().all(|(relation, operand)| {
            let now = operand.value.value(results).value;
            let holds = match relation {
                Relation::Less => before < now,
                Relation::AtMost => before <= now,
                Relation::More => before > now,
                Relation::AtLeast => before >= now,
                Relation::Equal => before.partial_cmp(&now) == Some(Ordering::Equal),
            };
            before = now;
            holds
        })
    }
}

/// Refuses to compare or add values of different dimensions.
fn same(one: i32, other: i32, at: usize) -> Result<(), Fault> {
    if one == other {
        return Ok(());
    }
    let (one, other) = (Quantity::kind(one), Quantity::kind(other));
    let why = format!("{one} and {other} can't be compared or added: is a unit missing?");
    Err(Fault { at, why })
}
