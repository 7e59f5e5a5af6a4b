//! sys

pub mod machine;
pub mod root;
