//! The forms results are shown in: text, tables, pictures.

pub(crate) mod live;
pub(crate) mod text;

use std::io::Write as _;

/// Says a sentence to the user, on stderr.
pub(crate) fn say(sentence: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr().lock(), "latlab: {sentence}");
}

/// Puts a result on stdout. A reader that has gone away, as `head` does, is no failure.
pub(crate) fn put(result: &str) -> crate::failure::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(result.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(crate::failure::failed("the result can't be written to stdout", e))
        }
        _ => Ok(()),
    }
}
