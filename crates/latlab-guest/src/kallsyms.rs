//! The kernel's symbols, sent from a guest to the host.

use flate2::Compression;
use flate2::write::GzEncoder;
use latlab_core::symbols::{KallsymsLine, preemption_counter};
use latlab_measure::message::Message;
use latlab_part::failure::{Context as _, Result, failed};
use latlab_part::progress::Stream;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write};

/// Sends the functions and the preemption counter of `/proc/kallsyms`, compressed: each byte costs
/// the driver of the serial port hundreds of instructions.
pub(super) fn send(port: &mut dyn Write) -> Result<()> {
    let unreadable = |e| failed("the kernel's symbols can't be read", e);
    let symbols = File::open("/proc/kallsyms").map_err(unreadable)?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    for line in BufReader::new(symbols).lines() {
        let line = line.map_err(unreadable)?;
        if is_wanted(&line) {
            writeln!(packed, "{line}").map_err(unreadable)?;
        }
    }
    let packed = packed.finish().map_err(unreadable)?;
    let sent = packed.chunks(1 << 16).try_for_each(|chunk| {
        let message = Message::output(Stream::Stdout, chunk);
        message.send(port)
    });
    sent.context("the port")
}

/// Whether a line is a function, without the padding before functions, or the preemption counter.
fn is_wanted(line: &str) -> bool {
    KallsymsLine::parse(line).is_some_and(|entry| {
        entry.is_function() && !entry.name.starts_with("__pfx_")
            || preemption_counter(entry.name).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kallsyms_leaves_out_padding_and_data() {
        assert!(is_wanted("ffffffff81000000 T _stext") && is_wanted("0000000000034a40 D pcpu_hot"));
        assert!(!is_wanted("ffffffff81000000 T __pfx_x") && !is_wanted("ffffffff81000000 D x"));
    }
}
