//! The record itself as an output: merged runs, or the result of another tool, kept as one record.

use super::output::{self, Destination, Format};
use super::picture::NamedRecord;
use latlab_core::record::Record;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::About;

/// The format in the table of output formats.
pub(super) const FORMAT: Format = Format {
    about: About {
        name: "record",
        summary: "Write the record: merged, or read from another tool's result",
    },
    option: "out",
    short: None,
    destination: Destination::File,
    needs_explanation: false,
    write: |contents, path| output::write(path, only(contents.sources)?.to_json().as_bytes()),
};

fn only(sources: &[NamedRecord]) -> Result<&Record> {
    match sources {
        [source] => Ok(&source.record),
        _ => Err(Failure::failed(
            "--out writes one record: name one record, or runs that are merged ('a-*.json')",
        )),
    }
}
