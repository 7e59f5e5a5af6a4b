//! What a user can ask for: one file per command.

pub(crate) mod report;
