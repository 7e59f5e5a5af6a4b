//! Machines that a study was measured on: their differences and their common facts.

use crate::html::facts::machine;
use crate::html::side_by_side::SideBySide;
use crate::picture::NamedRecord;
use maud::Markup;

/// A column for each target. The cells of a target may have different values.
pub(super) fn tables(sources: &[NamedRecord]) -> Markup {
    let facts =
        sources.iter().map(|source| (source.record.plan.target.as_str(), machine(&source.record)));
    SideBySide::grouped(facts).tables("Machines", "cells")
}
