//! The process file system: files of /proc that the kernel makes up on each reading.

use super::{Bench, Load, Place};
use crate::failure::{Failure, Result};
use crate::registry::About;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

/// Reads a file of /proc from its beginning to its end, again and again, one worker on each CPU.
///
/// The procfs load of Abeni et al. 2002 (section 5.2, a 512 MB file in /proc/kcore's place): long
/// loops in the kernel on behalf of a reader. Its work is counted in bytes read.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Procfs {
    /// The file; a long one takes the kernel long
    #[arg(long, default_value = "/proc/kallsyms")]
    path: PathBuf,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Load for Procfs {
    const ABOUT: About = About { name: "procfs", summary: "read a file of /proc" };
    const UNIT: &'static str = "bytes";

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, _: u64) -> Result<()> {
        let cannot = |why: &dyn std::fmt::Display| {
            let path = self.path.display();
            Failure::Failed(format!(
                "procfs: {path} can't be read ({why}): name another with path="
            ))
        };
        // Opening a named pipe would wait for a writer, which may never come.
        if std::fs::metadata(&self.path).is_ok_and(|there| !there.is_file()) {
            return Err(cannot(&"it is not a file"));
        }
        let read = File::open(&self.path).and_then(|mut file| file.read(&mut [0; 64]));
        match read {
            Ok(0) => Err(cannot(&"it is empty")),
            Ok(_) => Ok(()),
            Err(e) => Err(cannot(&e)),
        }
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        bench.ready();
        while bench.running() {
            let mut file = File::open(&self.path)?;
            while bench.running() {
                let read = file.read(&mut buffer)?;
                bench.done(read as u64);
                if read == 0 {
                    break;
                }
            }
        }
        Ok(())
    }
}
