//! Pure part of latlab: latencies, histograms, records, and their comparison, without any I/O.
//!
//! Nothing here reads a clock, a file or the machine, so that everything can be tested with plain
//! data. Times are [`time::Nanos`]; the data of one run is a [`record::Record`].
#![forbid(unsafe_code)]

pub mod atomic_histogram;
pub mod bound;
pub mod brief;
pub mod cause;
pub mod compare;
pub mod cpulist;
pub mod doctor;
pub mod explain;
pub mod feed;
pub mod foreign;
pub mod growth;
pub mod histogram;
mod interval;
pub mod list;
pub mod machine;
pub mod path;
pub mod periods;
pub mod plan;
pub mod proof;
pub mod random;
pub mod record;
mod remedy;
pub mod rhealstone;
pub mod scan;
pub mod sink;
pub mod size;
pub mod study;
pub mod suggest;
pub mod symbols;
pub mod time;
pub mod timeline;
pub mod verdict;
pub mod watch;
pub mod worst;
