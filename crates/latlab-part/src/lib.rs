//! What all parts of latlab share: their description and parameters, what they need of a machine,
//! failures, and how progress is shown.
#![forbid(unsafe_code)]

pub mod failure;
pub mod part;
pub mod progress;
