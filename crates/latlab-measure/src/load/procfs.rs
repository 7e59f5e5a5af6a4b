//! procfs load: a file of /proc, which the kernel generates on each read.

use super::{Load, LoadContext, Place};
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

/// Reads a file of /proc from beginning to end repeatedly, one worker on each CPU.
///
/// The procfs load of Abeni et al. 2002 (section 5.2, with a 512 MB file in place of /proc/kcore):
/// long loops in the kernel on behalf of a reader. Counts bytes read.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Procfs {
    /// The file; a large one keeps the kernel busy for longer
    #[arg(long, default_value = "/proc/kallsyms")]
    path: PathBuf,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Procfs {
    const ABOUT: About = About { name: "procfs", summary: "read a file of /proc" };
}

impl Load for Procfs {
    fn unit(&self) -> &'static str {
        "bytes"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, _: u64) -> Result<()> {
        let cannot = |why: &dyn std::fmt::Display| {
            let path = self.path.display();
            Failure::failed(format!(
                "procfs: {path} can't be read ({why}): choose another with path="
            ))
        };
        // Opening a named pipe would wait for a writer.
        if std::fs::metadata(&self.path).is_ok_and(|there| !there.is_file()) {
            return Err(cannot(&"it is not a file"));
        }
        let read = File::open(&self.path).and_then(|mut file| file.read(&mut [0; 64]));
        match read {
            Ok(0) => Err(cannot(&"empty")),
            Ok(_) => Ok(()),
            Err(e) => Err(cannot(&e)),
        }
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        context.ready();
        while context.running() {
            let mut file = File::open(&self.path)?;
            while context.running() {
                let read = file.read(&mut buffer)?;
                context.done(read as u64);
                if read == 0 {
                    break;
                }
            }
        }
        Ok(())
    }
}
