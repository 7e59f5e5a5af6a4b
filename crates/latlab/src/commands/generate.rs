//! `latlab generate`: prints the manual page, shell completions, a configuration or the reference.

use super::list::reference;
use crate::failure::{Result, failed};
use crate::format;
use clap::ValueEnum;
use clap_complete::Shell;
use latlab_core::mechanism::configuration;

const EXAMPLES: &str = "\
Examples:
  latlab generate man > latlab.1
  source <(latlab generate bash)
  latlab generate adapt.toml > /etc/latlab/adapt.toml";

/// Print the manual page, completions for a shell, a configuration, or the reference
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Generate {
    /// The document to print
    document: Document,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Document {
    /// Manual page in troff, for man(1)
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
    pub(super) fn run(&self, mut command: clap::Command) -> Result<()> {
        let shell = match self.document {
            Document::Man => return man(&command),
            Document::Reference => return format::put(&reference::page()),
            Document::Bash => Shell::Bash,
            Document::Zsh => Shell::Zsh,
            Document::Fish => Shell::Fish,
            Document::Adapt => return format::put(configuration::DEFAULT),
        };
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "latlab", &mut text);
        format::put(&String::from_utf8_lossy(&text))
    }
}

/// Prints one page for the program and all its commands.
fn man(command: &clap::Command) -> Result<()> {
    let mut text = Vec::new();
    let page =
        |command: clap::Command, text: &mut Vec<u8>| clap_mangen::Man::new(command).render(text);
    page(command.clone(), &mut text).map_err(|e| failed("the manual page", e))?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("latlab-{}", sub.get_name());
        page(sub.clone().name(name), &mut text).map_err(|e| failed("the manual page", e))?;
    }
    format::put(&String::from_utf8_lossy(&text))
}
