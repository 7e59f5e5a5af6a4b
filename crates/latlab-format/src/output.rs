//! An output format of `latlab report`: its option, and how it writes files.

use super::picture::{Chart, NamedRecord};
use super::say;
use clap::{Arg, value_parser};
use latlab_part::failure::{Context as _, Result};
use latlab_part::part::About;
use latlab_sys::file::write_atomically;
use std::path::{Path, PathBuf};

/// An output format of `latlab report`.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Name, and help of its option.
    pub about: About,
    /// Option of `latlab report` that selects it.
    pub option: &'static str,
    /// Short form of the option.
    pub short: Option<char>,
    /// Value of the option.
    pub destination: Destination,
    /// Whether it shows only explanations.
    pub needs_explanation: bool,
    /// Writes the file or the files.
    pub write: fn(&Contents<'_>, &Path) -> Result<()>,
}

/// Value of a format's option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file that is always written, here unless another one is named.
    DefaultFile(&'static str),
    /// A file.
    File,
    /// A folder, which is created if necessary.
    Folder,
}

/// Everything that formats show.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The records, in the order that the user named them.
    pub sources: &'a [NamedRecord],
    /// Their charts.
    pub charts: &'a [Chart],
}

impl Format {
    /// The option of `latlab report` that selects it.
    pub(super) fn argument(&self) -> Arg {
        let argument = Arg::new(self.option).long(self.option).help(self.about.summary);
        let argument = argument.value_parser(value_parser!(PathBuf));
        let argument = match self.short {
            Some(letter) => argument.short(letter),
            None => argument,
        };
        match self.destination {
            Destination::DefaultFile(path) => argument.value_name("FILE").default_value(path),
            Destination::File => argument.value_name("FILE"),
            Destination::Folder => argument.value_name("DIR"),
        }
    }
}

/// Writes a file of each chart into a folder.
pub(super) fn write_charts(
    folder: &Path,
    charts: &[Chart],
    extension: &str,
    draw: impl Fn(&Chart) -> Vec<u8>,
) -> Result<()> {
    charts.iter().try_for_each(|chart| {
        write(&folder.join(format!("{}.{extension}", chart.name)), &draw(chart))
    })
}

/// Writes a file and reports it on stderr.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.display().to_string();
    write_atomically(path, bytes).context(&name)?;
    say(&format!("wrote {name}"));
    Ok(())
}
