//! Help, and the messages for command lines that clap refuses.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use latlab_format as format;
use latlab_part::failure::{Failure, Result};
use std::ffi::OsString;

/// Prints the short help.
pub(super) fn print_help(command: &mut Command) -> Result<()> {
    format::show(&command.render_help().to_string())
}

/// Prints help and version. Turns any other message of clap about `command` into a failure, in one
/// sentence.
pub(super) fn print_clap(error: &clap::Error, command: &str) -> Result<()> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return format::show(&error.render().to_string());
    }
    Err(Failure::failed(sentence(error, command)))
}

/// The command that the arguments begin with: `latlab kernel build`. Options end it.
pub(super) fn command(latlab: &Command, arguments: &[OsString]) -> String {
    let (mut found, mut at) = (latlab.get_name().to_owned(), latlab);
    for word in arguments.iter().skip(1).map_while(|word| word.to_str()) {
        let Some(sub) = at.find_subcommand(word) else { break };
        at = sub;
        found = format!("{found} {word}");
    }
    found
}

/// The message of clap in one sentence, with a hint and the help of `command`.
pub(super) fn sentence(error: &clap::Error, command: &str) -> String {
    let rendered = error.render().to_string();
    let sentence = rendered.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let sentence = match error.kind() {
        // clap prints the help instead.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("{command} needs a command")
        }
        // clap lists the arguments on separate lines.
        kind if sentence.ends_with(':') => {
            let is_conflict = kind == ErrorKind::ArgumentConflict;
            let listed = if is_conflict { ContextKind::PriorArg } else { ContextKind::InvalidArg };
            format!("{sentence} {}", context(error, listed).unwrap_or_default())
        }
        _ => sentence.to_owned(),
    };
    let near = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
        ContextKind::ValidValue,
    ];
    let near = near.into_iter().find_map(|kind| context(error, kind));
    let near = near.map(|near| format!(": did you mean {near}?")).unwrap_or_default();
    format!("{sentence}{near} (see {command} --help)")
}

/// The context of this kind that clap adds to its message, if any.
fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(several) if !several.is_empty() => Some(several.join(" or ")),
        _ => None,
    }
}
