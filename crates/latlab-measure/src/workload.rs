//! Workloads that probes and loads share, their worker processes, and counters of their cost.

pub mod hackbench;
pub mod netbench;
pub mod perf_counters;
pub mod token_ring;
pub mod worker;
