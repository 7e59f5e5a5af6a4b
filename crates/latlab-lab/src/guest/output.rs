//! Output of a guest and of its QEMU: files in memory that only grow.

use latlab_core::size::Bytes;
use latlab_sys::file;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The files.
pub(super) struct Outputs {
    /// The kernel's console.
    pub(super) console: File,
    /// Messages from latlab in the guest.
    pub(super) port: File,
    /// QEMU's own output.
    pub(super) stderr: File,
    /// The recording of the plugin.
    pub(super) trace: File,
}

impl Outputs {
    /// Empty files.
    pub(super) fn new() -> io::Result<Outputs> {
        Ok(Outputs {
            console: file::in_memory()?,
            port: file::in_memory()?,
            stderr: file::in_memory()?,
            trace: file::in_memory()?,
        })
    }

    /// Names the first output that exceeds its limit. The recording has none: the plugin writes it,
    /// not the guest.
    pub(super) fn excess(&self) -> Option<String> {
        let is_long = |file: &File, most| file.metadata().is_ok_and(|file| file.len() > most);
        let files = [
            ("its console", &self.console, LONGEST),
            ("QEMU's output", &self.stderr, LONGEST),
            ("what it has sent", &self.port, LONGEST_SENT),
        ];
        let (name, _, most) = files.into_iter().find(|(_, file, most)| is_long(file, *most))?;
        Some(format!("{name} is longer than {}", Bytes(most)))
    }
}

/// Maximum length of the console and of QEMU's output in bytes: a thousand times the output of a
/// boot.
const LONGEST: u64 = 64 << 20;

/// Maximum length of all messages in bytes: four of the longest messages, or a program's output in
/// base64 (4:3).
const LONGEST_SENT: u64 = 1 << 30;

/// The lines of a file that grows.
pub(super) struct Lines {
    file: File,
    longest: u64,
    /// Bytes of the file that have been read.
    read: u64,
    /// The beginning of a line whose end is missing.
    begun: Vec<u8>,
}

impl Lines {
    /// The lines of this file, each shorter than `longest` bytes.
    pub(super) fn of(file: File, longest: u64) -> Lines {
        Lines { file, longest, read: 0, begun: Vec::new() }
    }

    /// The lines since the last call, whole ones only; where many wait, some of them. A line that is
    /// too long is an error.
    pub(super) fn take(&mut self) -> io::Result<String> {
        let old = self.begun.len();
        let room = self.longest.saturating_sub(old as u64);
        let new = self.file.metadata()?.len().saturating_sub(self.read).min(room);
        self.begun.resize(old + usize::try_from(new).unwrap_or(0), 0);
        self.file.read_exact_at(&mut self.begun[old..], self.read)?;
        self.read += new;
        match self.begun[old..].iter().rposition(|byte| *byte == b'\n') {
            Some(last) => {
                let begun = self.begun.split_off(old + last + 1);
                Ok(lossy(std::mem::replace(&mut self.begun, begun)))
            }
            None if new == room => {
                Err(io::Error::other("the guest sent a line that is longer than any record"))
            }
            None => Ok(String::new()),
        }
    }
}

/// The last bytes of a file, at most this many.
pub(super) fn end_of(file: &File, most: u64) -> io::Result<String> {
    text_from(file, file.metadata()?.len().saturating_sub(most))
}

/// The contents of a file.
pub(super) fn text(file: &File) -> io::Result<String> {
    text_from(file, 0)
}

/// The contents of a file from `offset` on.
fn text_from(file: &File, offset: u64) -> io::Result<String> {
    let length = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(lossy(bytes))
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn lines_are_taken_once_and_whole() {
        let mut file = file::in_memory().unwrap();
        let mut lines = Lines::of(file.try_clone().unwrap(), 10);
        let mut after = |written: &str| {
            file.write_all(written.as_bytes()).unwrap();
            lines.take().unwrap()
        };
        let taken = ["", "on", "e\ntwo\nth", "", "ree\n"].map(&mut after);
        assert_eq!(taken, ["", "", "one\ntwo\n", "", "three\n"]);
        // More lines than fit at once.
        let taken = ["four\nfive\nsix\n", "", "\n"].map(&mut after);
        assert_eq!(taken, ["four\nfive\n", "six\n", "\n"]);
    }

    #[test]
    fn line_without_an_end_is_refused() {
        let mut file = file::in_memory().unwrap();
        let mut lines = Lines::of(file.try_clone().unwrap(), 10);
        file.write_all(b"12345").unwrap();
        assert_eq!(lines.take().unwrap(), "");
        file.write_all(&[b'x'; 1_000]).unwrap();
        assert!(lines.take().unwrap_err().to_string().contains("longer than any record"));
        assert!(lines.begun.len() <= 10);
    }

    #[test]
    fn all_that_a_guest_writes_has_a_longest_length() {
        let outputs = Outputs::new().unwrap();
        assert_eq!(outputs.excess(), None);
        outputs.port.set_len(LONGEST_SENT + 1).unwrap();
        assert_eq!(outputs.excess().unwrap(), "what it has sent is longer than 1GiB");
        outputs.stderr.set_len(LONGEST + 1).unwrap();
        assert_eq!(outputs.excess().unwrap(), "QEMU's output is longer than 64MiB");
        outputs.console.set_len(LONGEST + 1).unwrap();
        assert_eq!(outputs.excess().unwrap(), "its console is longer than 64MiB");
    }
}
