//! What each fuzz target does with its input: it parses the input as latlab does, uses the result as
//! latlab does, and asserts what must hold for any input.
//!
//! libFuzzer runs them in `make fuzz`; the tests replay the kept corpus and changes of it.
#![forbid(unsafe_code)]

pub mod records;
pub mod texts;

/// A fuzz target: it panics where an input reveals a defect.
pub type Target = fn(&[u8]);

/// Every fuzz target by the name of its file and of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("claim", texts::claim),
    ("configuration", texts::configuration),
    ("cpulist", texts::cpulist),
    ("histogram", records::histogram),
    ("path", records::path),
    ("protocol", texts::protocol),
    ("record", records::record),
    ("setting", texts::setting),
    ("size", texts::size),
    ("study", texts::study),
    ("symbols", texts::symbols),
    ("time", texts::time),
    ("trace", records::trace),
];
