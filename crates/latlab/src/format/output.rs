//! Output formats of `latlab report`, and the options that ask for them.

use super::picture::{Chart, NamedRecord};
use super::{folded, html, parquet, perfetto, png, say, svg};
use crate::failure::{Failure, Result, failed};
use crate::part::About;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use latlab_sys::file::write_atomically;
use std::path::{Path, PathBuf};

/// Every output format, in the order they are written.
pub(crate) static FORMATS: &[Format] =
    &[html::FORMAT, svg::FORMAT, png::FORMAT, parquet::FORMAT, perfetto::FORMAT, folded::FORMAT];

/// An output format of `latlab report`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Name, and help of its option.
    pub(crate) about: About,
    /// Option of `latlab report` that asks for it.
    pub(crate) option: &'static str,
    /// Short form of the option.
    pub(crate) short: Option<char>,
    /// What the option takes.
    pub(crate) destination: Destination,
    /// Whether it shows nothing but explanations.
    pub(crate) needs_explanation: bool,
    /// Writes the file or the files.
    pub(crate) write: fn(&Contents<'_>, &Path) -> Result<()>,
}

/// What the option of a format takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A file that is always written, here unless another one is named.
    DefaultFile(&'static str),
    /// A file.
    File,
    /// A folder, which is created if necessary.
    Folder,
}

/// Everything that formats show.
#[derive(Debug)]
pub(crate) struct Contents<'a> {
    pub(crate) sources: &'a [NamedRecord],
    pub(crate) charts: &'a [Chart],
}

/// The formats that the user asked for, with their destinations.
#[derive(Clone, Debug)]
pub(crate) struct Outputs(Vec<(&'static Format, PathBuf)>);

impl Outputs {
    /// Returns an error if an output would overwrite one of the records.
    pub(crate) fn check_paths(&self, records: &[PathBuf]) -> Result<()> {
        let files = self.0.iter().filter(|(format, _)| format.destination != Destination::Folder);
        for (_, path) in files {
            let real = path.canonicalize().ok();
            if real.is_some() && records.iter().any(|record| record.canonicalize().ok() == real) {
                let place = path.display().to_string();
                return Err(failed(&place, "this is a record: name another file to write"));
            }
        }
        Ok(())
    }

    /// Returns an error if a format needs explanations and no record has any.
    pub(crate) fn check_explained(&self, sources: &[NamedRecord]) -> Result<()> {
        let needed = self.0.iter().any(|(format, _)| format.needs_explanation);
        if !needed || sources.iter().any(|source| source.record.explained.is_some()) {
            return Ok(());
        }
        Err(Failure::Failed(
            "these records contain no explanations, so there is no trace and no stack to write: \
             record with latlab explain"
                .to_owned(),
        ))
    }

    /// Writes every format.
    pub(crate) fn write(&self, contents: &Contents<'_>) -> Result<()> {
        for (format, path) in &self.0 {
            if format.destination == Destination::Folder {
                let place = path.display().to_string();
                std::fs::create_dir_all(path).map_err(|e| failed(&place, e))?;
            }
            (format.write)(contents, path)?;
        }
        Ok(())
    }
}

impl Format {
    fn argument(&self) -> Arg {
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

impl Args for Outputs {
    fn augment_args(command: Command) -> Command {
        command.args(FORMATS.iter().map(Format::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Outputs::augment_args(command)
    }
}

impl FromArgMatches for Outputs {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Outputs, clap::Error> {
        let given = FORMATS.iter().filter_map(|format| {
            Some((format, matches.get_one::<PathBuf>(format.option)?.clone()))
        });
        Ok(Outputs(given.collect()))
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Outputs::from_arg_matches(matches)?;
        Ok(())
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
    write_atomically(path, bytes).map_err(|e| failed(&name, e))?;
    say(&format!("wrote {name}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn formats_have_distinct_options_and_short_summaries() {
        let options: BTreeSet<&str> = FORMATS.iter().map(|format| format.option).collect();
        assert_eq!(options.len(), FORMATS.len());
        for format in FORMATS {
            assert!(format.about.summary.len() <= 72, "{}", format.about.name);
        }
    }
}
