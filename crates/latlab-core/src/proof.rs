//! Proofs of remedies: changes that can be made at once against the leading causes of late
//! wake-ups. The same is measured in turns with and without a change, which shows whether wake-ups
//! are less late with it.

mod candidates;
mod evidence;
mod judge;
#[cfg(test)]
mod tests;
mod words;

pub use crate::record::proofs::{Effect, Judged, JudgedFigure, Outcome, Proof, Proofs};
pub use crate::record::remedy::Remedy;
pub use candidates::{Candidate, candidates, not_tried};
pub use judge::judge;
