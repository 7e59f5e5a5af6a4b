//! Parts: the common description of probes, loads, calls, causes, mechanisms and targets, and the
//! parser of `name:key=value`.

pub mod driver;
pub mod needs;
pub mod permission;

use crate::failure::{Failure, Result};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, Command, ValueHint};
use latlab_core::plan::Part;
use latlab_core::suggest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::error::Error as _;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

/// The description of a part. Its long text is the doc comment of its struct.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line of at most 72 columns.
    pub summary: &'static str,
}

/// A part of any kind: it has a name and a description.
pub trait Describe {
    /// Its name and summary.
    const ABOUT: About;
}

/// Parameters: `key=value` on the command line, JSON in plans and records. The doc comments of
/// the fields are their help.
pub trait Params: Args + Serialize + DeserializeOwned + Debug + Send + Sync + 'static {}
impl<T: Args + Serialize + DeserializeOwned + Debug + Send + Sync + 'static> Params for T {}

/// The parameters of a part as plans keep them.
pub type ReadParams = std::result::Result<Map<String, Value>, clap::Error>;

/// One line of a table of parts.
pub struct Entry<T: ?Sized> {
    /// Its name and summary.
    pub about: About,
    /// The part's parameters as clap knows them, for help and for reading them.
    pub keys: fn() -> Command,
    /// Makes parameters, defaults included, from `--key=value` words.
    pub read: fn(&[String]) -> ReadParams,
    /// Makes the part from its parameters.
    pub build: fn(Map<String, Value>) -> serde_json::Result<Box<T>>,
}

impl<T: ?Sized> Debug for Entry<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("about", &self.about).finish_non_exhaustive()
    }
}

/// A part of a plan, built once from its name and parameters. Clones share it.
pub struct Built<T: ?Sized> {
    /// Its name and parameters, as the plan has them.
    pub part: Part,
    built: Arc<T>,
}

impl<T: ?Sized> Built<T> {
    /// Builds the part of a plan from the table of its kind.
    pub fn new(kind: &str, table: &'static [Entry<T>], part: &Part) -> Result<Built<T>> {
        let built = Arc::from(build(kind, table, part)?);
        Ok(Built { part: part.clone(), built })
    }

    /// Its name on the command line.
    pub fn name(&self) -> &str {
        &self.part.name
    }
}

impl<T: ?Sized> Clone for Built<T> {
    fn clone(&self) -> Built<T> {
        Built { part: self.part.clone(), built: Arc::clone(&self.built) }
    }
}

impl<T: ?Sized> Deref for Built<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.built
    }
}

impl<T: ?Sized> Debug for Built<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.part.fmt(f)
    }
}

/// The parameters of `P` as clap knows them, without clap's own options.
pub fn keys<P: Params>() -> Command {
    P::augment_args(Command::new("part")).no_binary_name(true).disable_help_flag(true)
}

/// Reads the parameters of `P` from `--key=value` words.
pub fn read<P: Params>(words: &[String]) -> ReadParams {
    let part = P::from_arg_matches(&keys::<P>().try_get_matches_from(words)?)?;
    match serde_json::to_value(part).expect("parameters are plain data") {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

/// Reads `name:key=value,value,…`. Values without a key belong to the keys in order. The value of a
/// command is the rest of the text. `defaults` apply to a part that has such a key, unless the text
/// sets it.
pub fn parse<T: ?Sized>(
    kind: &str,
    table: &'static [Entry<T>],
    text: &str,
    defaults: &[(&str, String)],
) -> Result<Part> {
    let (name, values) = text.split_once(':').unwrap_or((text, ""));
    let entry = find(kind, table, name)?;
    let command = (entry.keys)();
    let known: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
    let mut given = pairs(name, values, &known, command_key(&command))?;
    for (key, value) in defaults {
        if known.contains(key) && !given.iter().any(|(k, _)| k == key) {
            given.push((key, value));
        }
    }
    let words: Vec<String> = given.iter().map(|(key, value)| format!("--{key}={value}")).collect();
    let params = (entry.read)(&words).map_err(|error| refusal(name, &error))?;
    Ok(Part { name: name.to_owned(), params })
}

/// The line of `table` with this name, or a failure with the nearest names.
pub fn find<T: ?Sized>(
    kind: &str,
    table: &'static [Entry<T>],
    name: &str,
) -> Result<&'static Entry<T>> {
    table.iter().find(|entry| entry.about.name == name).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|entry| entry.about.name).collect();
        Failure::failed(format!("there is no {kind} '{name}': {}", suggest::hint(name, &names)))
    })
}

/// Makes a part from its name and parameters in a plan.
pub fn build<T: ?Sized>(kind: &str, table: &'static [Entry<T>], part: &Part) -> Result<Box<T>> {
    let entry = find(kind, table, &part.name)?;
    (entry.build)(part.params.clone())
        .map_err(|e| Failure::failed(format!("{kind} {}: {e}", part.name)))
}

/// The key whose value is a command.
fn command_key(keys: &Command) -> Option<&str> {
    let is_command = |key: &&Arg| key.get_value_hint() == ValueHint::CommandString;
    keys.get_arguments().find(is_command).and_then(Arg::get_long)
}

/// Splits `key=value,value,…` and assigns a key to each value. `command` is the key of a command.
fn pairs<'a>(
    name: &str,
    text: &'a str,
    known: &[&'a str],
    command: Option<&str>,
) -> Result<Vec<(&'a str, &'a str)>> {
    let failed = |why: String| Failure::failed(format!("{name}: {why}"));
    let mut given: Vec<(&str, &str)> = Vec::new();
    let mut rest = text.trim_start_matches(',');
    while !rest.is_empty() {
        let next = known.get(given.len()).copied();
        let (key, value, after) = pair(rest, known, next, command).map_err(failed)?;
        if given.iter().any(|(earlier, _)| *earlier == key) {
            return Err(failed(format!("{key} is given twice")));
        }
        given.push((key, value));
        rest = after.trim_start_matches(',');
    }
    Ok(given)
}

/// The first key and value of `text`, and the text after them. A value without a key belongs to the
/// key `next`. The value of a `command` is the rest of the text, with its commas and equals signs.
fn pair<'a>(
    text: &'a str,
    known: &[&'a str],
    next: Option<&'a str>,
    command: Option<&str>,
) -> std::result::Result<(&'a str, &'a str, &'a str), String> {
    let (word, after) = text.split_once(',').unwrap_or((text, ""));
    let (named, next_is_command) = (word.split_once('='), next.is_some() && next == command);
    let (key, start) = match (named, next) {
        (Some((key, _)), _) if known.contains(&key) => (key, key.len() + 1),
        (Some((key, _)), _) if !next_is_command => {
            return Err(format!("there is no key '{key}': {}", suggest::hint(key, known)));
        }
        (_, Some(next)) => (next, 0),
        (_, None) => return Err(format!("'{word}' is one value too many")),
    };
    Ok(match command {
        Some(command) if command == key => (key, &text[start..], ""),
        _ => (key, &word[start..], after),
    })
}

/// clap's error about a key, as one sentence.
fn refusal(name: &str, error: &clap::Error) -> Failure {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let argument = context(ContextKind::InvalidArg);
    let key = argument.trim_start_matches('-').split([' ', '=']).next().unwrap_or_default();
    let value = context(ContextKind::InvalidValue);
    Failure::failed(match (error.kind(), error.source()) {
        (ErrorKind::ValueValidation, Some(why)) => format!("{name}: {key}: {why}"),
        (ErrorKind::InvalidValue, _) => {
            let valid = context(ContextKind::ValidValue);
            let valid: Vec<&str> = valid.split(", ").collect();
            format!("{name}: {key} can't be '{value}': {}", suggest::hint(&value, &valid))
        }
        (ErrorKind::MissingRequiredArgument, _) => format!("{name}: {key} is missing"),
        _ => format!("{name}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::time::Nanos;

    /// Reads a file in pieces.
    #[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
    struct Read {
        #[arg(long)]
        path: String,
        #[arg(long, default_value = "1ms")]
        every: Nanos,
        #[arg(long, default_value = "cold", value_parser = ["cold", "warm"])]
        cache: String,
    }

    static TABLE: &[Entry<Read>] = &[Entry {
        about: About { name: "read", summary: "reads" },
        keys: keys::<Read>,
        read: read::<Read>,
        build: |params| Ok(Box::new(serde_json::from_value(Value::Object(params))?)),
    }];

    fn refused(text: &str) -> String {
        parse("load", TABLE, text, &[]).unwrap_err().to_string()
    }

    #[test]
    fn part_assigns_values_without_a_key_in_order() {
        let part = parse("load", TABLE, "read:/etc/hosts,2ms,cache=warm", &[]).unwrap();
        let read = build("load", TABLE, &part).unwrap();
        assert_eq!((read.path.as_str(), read.every), ("/etc/hosts", Nanos::from_millis(2)));
        assert_eq!(read.cache, "warm");
    }

    /// Runs a command.
    #[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
    struct Start {
        #[arg(long, value_hint = ValueHint::CommandString)]
        command: Option<String>,
        #[arg(long, default_value = "all", value_parser = ["all", "some"])]
        on: String,
    }

    static STARTS: &[Entry<Start>] = &[Entry {
        about: About { name: "start", summary: "starts" },
        keys: keys::<Start>,
        read: read::<Start>,
        build: |params| Ok(Box::new(serde_json::from_value(Value::Object(params))?)),
    }];

    #[test]
    fn part_command_takes_the_rest_of_the_text() {
        let read = |text: &str| {
            let part = parse("load", STARTS, text, &[]).unwrap();
            let start = build("load", STARTS, &part).unwrap();
            (start.command.unwrap_or_default(), start.on)
        };
        let all = |command: &str| (command.to_owned(), "all".to_owned());
        assert_eq!(read("start"), all(""));
        assert_eq!(read("start:stress-ng --cpu 2"), all("stress-ng --cpu 2"));
        assert_eq!(read("start:a --b=1,2:3,on=some"), all("a --b=1,2:3,on=some"));
        assert_eq!(read("start:X=1 a"), all("X=1 a"));
        assert_eq!(read("start:command=on=some"), all("on=some"));
        let some = ("a b,c=d".to_owned(), "some".to_owned());
        assert_eq!(read("start:on=some,command=a b,c=d"), some);
        let refused = |text| parse("load", STARTS, text, &[]).unwrap_err().to_string();
        assert_eq!(refused("start:on=none"), "start: on can't be 'none': choose from all, some");
    }

    #[test]
    fn part_default_yields_to_a_given_value() {
        let outside = [("every", "5s".to_owned()), ("nonsense", "1".to_owned())];
        let every = |text| parse("load", TABLE, text, &outside).unwrap().params["every"].clone();
        assert_eq!(every("read:x"), 5_000_000_000_u64);
        assert_eq!(every("read:x,every=1s"), 1_000_000_000_u64);
    }

    #[test]
    fn part_refuses_bad_input_in_one_sentence_with_a_hint() {
        assert_eq!(refused("raed:x"), "there is no load 'raed': did you mean read?");
        assert_eq!(refused("read:x,evry=1s"), "read: there is no key 'evry': did you mean every?");
        assert_eq!(refused("read:x,5"), "read: every: '5' has no unit: write 5us, 5ms or 5s");
        assert_eq!(refused("read:x,cache=warn"), "read: cache can't be 'warn': did you mean warm?");
        assert_eq!(refused("read:x,path=y"), "read: path is given twice");
        assert_eq!(refused("read:a,1s,warm,b"), "read: 'b' is one value too many");
        assert_eq!(refused("read"), "read: path is missing");
    }
}
