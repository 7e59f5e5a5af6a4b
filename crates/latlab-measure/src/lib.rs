//! Carries out plans on the machine it runs on: probes, loads, scans, explanations and checks.
#![forbid(unsafe_code)]

pub mod call;
pub mod cause;
pub mod check;
pub mod engine;
pub mod explain;
pub mod load;
pub mod message;
pub mod probe;
pub mod rig;
pub mod scan;
pub mod session;
pub mod worker;
pub mod workload;
