//! The table of output formats, and the selection of the user.

use super::output::{Contents, Destination, Format};
use super::picture::NamedRecord;
use super::{folded, html, parquet, perfetto, record, svg};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use latlab_part::failure::{Context as _, Failure, Result, failed};
use std::path::{Path, PathBuf};

/// Every output format, in the order they are written.
pub static FORMATS: &[Format] =
    &[record::FORMAT, html::FORMAT, svg::FORMAT, parquet::FORMAT, perfetto::FORMAT, folded::FORMAT];

/// The formats that the user has selected, with their destinations.
#[derive(Clone, Debug)]
pub struct Outputs(Vec<(&'static Format, PathBuf)>);

impl Outputs {
    /// Returns an error if an output would overwrite one of the records, or another output.
    pub fn check_paths(&self, records: &[PathBuf]) -> Result<()> {
        let records: Vec<PathBuf> = records.iter().filter_map(|path| file_at(path)).collect();
        let mut written = Vec::new();
        let files = self.0.iter().filter(|(format, _)| format.destination != Destination::Folder);
        for (_, path) in files {
            let Some(file) = file_at(path) else { continue };
            let refused = |why| Err(failed(&path.display().to_string(), why));
            if records.contains(&file) {
                return refused("this is a record: name another file to write");
            }
            if written.contains(&file) {
                return refused("two outputs would be written to this file: name another one");
            }
            written.push(file);
        }
        Ok(())
    }

    /// Returns an error if a format needs explanations and no record has any.
    pub fn check_explained(&self, sources: &[NamedRecord]) -> Result<()> {
        let needed = self.0.iter().any(|(format, _)| format.needs_explanation);
        if !needed || sources.iter().any(|source| source.record.explained.is_some()) {
            return Ok(());
        }
        Err(Failure::failed(
            "these records contain no explanations, so there is no trace and no stack to write: \
             record with latlab explain",
        ))
    }

    /// The file of the page, if nothing else is to be written.
    pub fn page_only(&self) -> Option<&Path> {
        match self.0.as_slice() {
            [(format, path)] if format.about.name == html::FORMAT.about.name => Some(path),
            _ => None,
        }
    }

    /// Writes every format.
    pub fn write(&self, contents: &Contents<'_>) -> Result<()> {
        for (format, path) in &self.0 {
            if format.destination == Destination::Folder {
                let place = path.display().to_string();
                std::fs::create_dir_all(path).context(&place)?;
            }
            (format.write)(contents, path)?;
        }
        Ok(())
    }
}

/// The file that is or will be at this path, without symbolic links. None for a device or a pipe,
/// and where the folder does not exist.
fn file_at(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return real.is_file().then_some(real);
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    Some(folder.unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?))
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
