//! Tests of the program from outside: it is started, given input, interrupted and killed.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the program, wait for it, and damage its files"
)]

mod accel;
mod acceptance;
mod adapt;
mod alone;
mod arm64;
mod bad_input;
mod bound;
mod check;
mod clock;
mod coming_from;
mod compare;
mod completion;
mod daemon;
mod documented;
mod driver;
mod exec;
mod explain;
mod faults;
mod help;
mod inject;
mod install;
mod interruption;
mod kernel;
mod killed;
mod knob;
mod laboratory;
mod limit;
mod live;
mod loads;
mod marks;
mod measuring;
mod missing;
mod offline;
mod parquet;
mod period;
mod player;
mod program;
mod realfeel;
mod records;
mod remains;
mod repeats;
mod rhealstone;
mod rights;
mod scan;
mod scenes;
mod schedule;
mod sections;
mod setting;
mod slurm;
mod snapshot;
mod ssh;
mod stall;
mod study;
mod threads;
mod throughput;
mod user;
mod width;
