//! Verdicts: what a record says, in a few sentences, and what to do next.

mod answer;
mod causes;
mod host;
mod running;
#[cfg(test)]
mod tests;
mod worst;

pub use causes::{LeadingCause, leading, leading_causes, note_on_functions};
pub use host::{Suspicion, probably_host};
pub use running::{is_of_gaps, percent, running};
pub use worst::{Next, next, worst};
