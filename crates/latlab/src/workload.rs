//! Workloads that probes and loads share, their worker processes, and counters of their cost.

pub(crate) mod hackbench;
pub(crate) mod netbench;
pub(crate) mod perf_counters;
pub(crate) mod token_ring;
pub(crate) mod worker;
