//! `latlab generate`: prints the manual pages, shell completions, a configuration or the reference.

use super::list::reference;
use clap::ValueEnum;
use clap_mangen::Man;
use latlab_format as format;
use latlab_mechanism::configuration;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::file::write_atomically;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab generate man --out man1/              a page for each command
  source <(latlab generate bash)
  latlab generate zsh > ~/.zfunc/_latlab       in a folder of $fpath
  latlab generate fish > ~/.config/fish/completions/latlab.fish
  mkdir -p /etc/latlab && latlab generate adapt.toml > /etc/latlab/adapt.toml";

/// Print the manual pages, completions for a shell, a configuration, or the reference
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Generate {
    /// The document to print
    document: Document,
    /// Write each manual page to a file in this folder: latlab.1, latlab-run.1, …
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Document {
    /// Manual pages in troff, for man(1)
    Man,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
    /// Configuration of latlab adapt, with the default values
    #[value(name = "adapt.toml")]
    Adapt,
    /// All parts with their keys, in Markdown
    #[value(name = "reference.md")]
    Reference,
}

impl Generate {
    pub(super) fn run(&self, command: clap::Command) -> Result<()> {
        match (self.document, &self.out) {
            (Document::Man, Some(folder)) => write_pages(command, folder),
            (_, Some(_)) => Err(Failure::failed("--out is for man, which is many pages")),
            (Document::Man, None) => print_pages(command),
            (Document::Bash, None) => format::put(include_str!("complete/latlab.bash")),
            (Document::Zsh, None) => format::put(include_str!("complete/latlab.zsh")),
            (Document::Fish, None) => format::put(include_str!("complete/latlab.fish")),
            (Document::Adapt, None) => format::put(configuration::DEFAULT),
            (Document::Reference, None) => format::put(&reference::page()),
        }
    }
}

/// Prints the pages of the program and all its commands, one after the other.
fn print_pages(command: clap::Command) -> Result<()> {
    let pages = pages(command)?;
    let text: Vec<u8> = pages.into_iter().flat_map(|(_, text)| text).collect();
    format::put(&String::from_utf8_lossy(&text))
}

/// Writes a page for the program and one for each command: `latlab.1`, `latlab-run.1`, …
fn write_pages(command: clap::Command, folder: &Path) -> Result<()> {
    let failed_at = |path: &Path, error| failed(&path.display().to_string(), error);
    std::fs::create_dir_all(folder).map_err(|e| failed_at(folder, e))?;
    for (name, text) in pages(command)? {
        let path = folder.join(name);
        write_atomically(&path, &text).map_err(|e| failed_at(&path, e))?;
    }
    Ok(())
}

/// The manual pages, each with the name of its file.
fn pages(command: clap::Command) -> Result<Vec<(String, Vec<u8>)>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let (mut pages, mut left) = (Vec::new(), vec![&command]);
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|sub| !sub.is_hide_set()));
        pages.push(page(command).context("the manual page")?);
    }
    pages.sort();
    Ok(pages)
}

/// The manual page of a command, and the name of its file. clap would fill the lines of examples.
fn page(command: &clap::Command) -> io::Result<(String, Vec<u8>)> {
    let end = command.get_after_long_help().or(command.get_after_help());
    let end = end.map(ToString::to_string).unwrap_or_default();
    let other = command.clone().after_help(None::<&str>).after_long_help(None::<&str>);
    let page = Man::new(other).manual("latlab");
    let mut text = Vec::new();
    page.render(&mut text)?;
    let (parts, examples) = end.split_once("Examples:\n").unwrap_or((&end, ""));
    for (title, lines) in [("PARTS", parts), ("EXAMPLES", examples)] {
        if !lines.trim().is_empty() {
            write!(text, ".SH {title}\n.nf\n{}\n.fi\n", escaped(lines.trim_end()))?;
        }
    }
    Ok((page.get_filename(), text))
}

/// Lines that troff prints as they are.
fn escaped(lines: &str) -> String {
    let lines = lines.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}
