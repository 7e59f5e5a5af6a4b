//! What the adaptive daemon is told by its configuration: how far it may go, who may ask it, and
//! which devices belong together.

use crate::suggest;
use core::net::SocketAddr;
use glob::Pattern;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;

/// The configuration that is in force where there is no file, in TOML, with comments.
pub const DEFAULT: &str = include_str!("configuration/adapt.toml");

/// What the daemon is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The highest real-time priority that a thread of an interrupt may be given, 1 to 98.
    pub ceiling: u32,
    /// The Unix group whose members may ask for device groups; none: root alone may.
    pub allow: Option<String>,
    /// Where metrics are served, a loopback address; none: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The device groups, by name.
    pub groups: Vec<DeviceGroup>,
}

/// Devices of one kind, known by the names of their interrupts and of their drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceGroup {
    /// What it is called. Upper and lower case are the same.
    pub name: String,
    actions: Vec<Pattern>,
    drivers: Vec<Pattern>,
}

impl DeviceGroup {
    /// Whether an interrupt is of this group: by one of its actions, as `/proc/interrupts` names
    /// them, or by the driver of its device, where that is known.
    pub fn has(&self, action: &str, driver: Option<&str>) -> bool {
        let fits = |patterns: &[Pattern], name: &str| patterns.iter().any(|one| one.matches(name));
        fits(&self.actions, action) || driver.is_some_and(|driver| fits(&self.drivers, driver))
    }
}

impl Configuration {
    /// Reads a configuration in TOML. What it does not say is as in [`DEFAULT`]. What it should not
    /// say is refused in a sentence that begins with the line.
    pub fn read(text: &str) -> Result<Configuration, String> {
        let (own, default) = (parse(text)?, parse(DEFAULT)?);
        let mut groups = named(default.groups, DEFAULT)?;
        for group in named(own.groups, text)? {
            groups.retain(|shipped| !same(&shipped.name, &group.name));
            groups.push(group);
        }
        groups.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Configuration {
            ceiling: own.ceiling.or(default.ceiling).map_or(90, |Ceiling(ceiling)| ceiling),
            allow: own.allow.or(default.allow).map(|Allowed(group)| group),
            metrics: own.metrics.or(default.metrics).map(|Loopback(address)| address),
            groups,
        })
    }

    /// The group of this name, or a sentence that says which there are.
    pub fn group(&self, name: &str) -> Result<&DeviceGroup, String> {
        self.groups.iter().find(|group| same(&group.name, name)).ok_or_else(|| {
            let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
            let hint = suggest::hint(&name.to_uppercase(), &names);
            format!("there is no device group '{name}': {hint}")
        })
    }
}

impl Default for Configuration {
    /// The one that is in force where there is no file.
    fn default() -> Configuration {
        Configuration::read("").expect("the tests have read it")
    }
}

/// An address that no other machine can reach, with its port, as `127.0.0.1:9464`.
pub fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        format!("'{text}' is no address with a port: write it as 127.0.0.1:9464 or [::1]:9464")
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(format!("{address} can be reached by other machines: use 127.0.0.1 or [::1]"))
}

/// Whether two names of groups are the same.
fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// A file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    ceiling: Option<Ceiling>,
    allow: Option<Allowed>,
    metrics: Option<Loopback>,
    #[serde(default)]
    groups: BTreeMap<Name, Patterns>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Patterns {
    #[serde(default)]
    actions: Vec<Glob>,
    #[serde(default)]
    drivers: Vec<Glob>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "i64")]
struct Ceiling(u32);

impl TryFrom<i64> for Ceiling {
    type Error = String;

    fn try_from(number: i64) -> Result<Ceiling, String> {
        let ceiling = u32::try_from(number).ok().filter(|number| (1..=98).contains(number));
        ceiling
            .map(Ceiling)
            .ok_or_else(|| format!("ceiling is {number}: it is a priority, 1 to 98"))
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Allowed(String);

impl TryFrom<String> for Allowed {
    type Error = String;

    fn try_from(name: String) -> Result<Allowed, String> {
        if name.is_empty() || name.contains([':', '\n']) {
            return Err(format!(
                "'{name}' is no Unix group: leave allow out to let root alone ask"
            ));
        }
        Ok(Allowed(name))
    }
}

#[derive(Debug)]
struct Loopback(SocketAddr);

impl<'de> Deserialize<'de> for Loopback {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Loopback, D::Error> {
        let text = String::deserialize(from)?;
        loopback(&text).map(Loopback).map_err(de::Error::custom)
    }
}

/// What may stand between commas in a request, and on one line.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Name, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 32 || !name.chars().all(fits) {
            return Err(format!(
                "'{name}' can't be a group's name: take 1 to 32 letters, digits, '-', '_' and '.'"
            ));
        }
        Ok(Name(name))
    }
}

#[derive(Debug)]
struct Glob(Pattern);

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Glob, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = |why| de::Error::custom(format!("'{text}' is no pattern: {why}"));
        Pattern::new(&text).map(Glob).map_err(wrong)
    }
}

fn parse(text: &str) -> Result<Written, String> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("line {line}: {}", error.message().replace('\n', " "))
    })
}

/// The groups under their names, none of which is there twice.
fn named(written: BTreeMap<Name, Patterns>, text: &str) -> Result<Vec<DeviceGroup>, String> {
    let mut groups: Vec<DeviceGroup> = Vec::new();
    for (Name(name), Patterns { actions, drivers }) in written {
        if let Some(earlier) = groups.iter().find(|group| same(&group.name, &name)) {
            let earlier = &earlier.name;
            let header = format!("[groups.{name}]");
            let line = text.lines().position(|line| line.trim_start().starts_with(&header));
            let line = line.map_or(1, |line| line + 1);
            return Err(format!("line {line}: the groups {earlier} and {name} are one: join them"));
        }
        let patterns = |written: Vec<Glob>| written.into_iter().map(|Glob(one)| one).collect();
        groups.push(DeviceGroup { name, actions: patterns(actions), drivers: patterns(drivers) });
    }
    Ok(groups)
}

#[cfg(test)]
mod tests;
