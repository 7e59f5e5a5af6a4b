//! Configuration of the adaptive daemon: priority ceiling, permitted users and device groups.

use core::net::SocketAddr;
use glob::Pattern;
use latlab_core::suggest;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;

/// The default configuration, in TOML with comments.
pub const DEFAULT: &str = include_str!("configuration/adapt.toml");

/// The settings of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The highest real-time priority that an IRQ thread may be given, 1 to 98.
    pub ceiling: u32,
    /// The Unix group whose members may request device groups; none if only root may.
    pub allow: Option<String>,
    /// The loopback address at which metrics are served; none if they are not.
    pub metrics: Option<SocketAddr>,
    /// The device groups, by name.
    pub groups: Vec<DeviceGroup>,
}

/// Devices of one kind, recognized by the names of their interrupts and drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceGroup {
    /// Its name; upper and lower case are equal.
    pub name: String,
    actions: Vec<Pattern>,
    drivers: Vec<Pattern>,
}

impl DeviceGroup {
    /// Whether an interrupt belongs to this group: by the name of its handler, as in
    /// `/proc/interrupts`, or by the driver of its device, where that is known.
    pub fn has(&self, action: &str, driver: Option<&str>) -> bool {
        let fits = |patterns: &[Pattern], name: &str| patterns.iter().any(|one| one.matches(name));
        fits(&self.actions, action) || driver.is_some_and(|driver| fits(&self.drivers, driver))
    }
}

impl Configuration {
    /// Reads a configuration in TOML. Missing settings are those of [`DEFAULT`]; invalid ones are
    /// refused in a sentence that begins with the line number.
    pub fn read(text: &str) -> Result<Configuration, String> {
        let (own, default) = (parse(text)?, parse(DEFAULT)?);
        let mut groups = named(default.groups, DEFAULT)?;
        for group in named(own.groups, text)? {
            groups.retain(|shipped| !same_name(&shipped.name, &group.name));
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

    /// Returns the group of this name, or a sentence that lists the groups there are.
    pub fn group(&self, name: &str) -> Result<&DeviceGroup, String> {
        self.groups.iter().find(|group| same_name(&group.name, name)).ok_or_else(|| {
            let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
            let hint = suggest::hint(&name.to_uppercase(), &names);
            format!("there is no device group '{name}': {hint}")
        })
    }
}

impl Default for Configuration {
    /// Returns [`DEFAULT`].
    fn default() -> Configuration {
        Configuration::read("").expect("the default configuration is valid")
    }
}

/// Parses a loopback address with its port, such as `127.0.0.1:9464`. Refuses, in a sentence, an
/// address that other machines can reach.
pub fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        format!("'{text}' is not an address with a port: write it as 127.0.0.1:9464 or [::1]:9464")
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(format!("{address} can be reached by other machines: use 127.0.0.1 or [::1]"))
}

/// Whether two group names are equal.
fn same_name(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// The contents of a configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
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
                "'{name}' is not a Unix group: omit allow so that only root may send requests"
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

/// A group name that can be written in the comma-separated list of a request.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Name, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 32 || !name.chars().all(fits) {
            return Err(format!(
                "'{name}' is not a valid group name: write 1 to 32 letters, digits, '-', '_' and \
                 '.'"
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
        let wrong = |why| de::Error::custom(format!("'{text}' is not a pattern: {why}"));
        Pattern::new(&text).map(Glob).map_err(wrong)
    }
}

fn parse(text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("line {line}: {}", error.message().replace('\n', " "))
    })
}

/// The groups with their names. Refuses a name that occurs twice, in any case.
fn named(written: BTreeMap<Name, Patterns>, text: &str) -> Result<Vec<DeviceGroup>, String> {
    let mut groups: Vec<DeviceGroup> = Vec::new();
    for (Name(name), Patterns { actions, drivers }) in written {
        if let Some(earlier) = groups.iter().find(|group| same_name(&group.name, &name)) {
            let earlier = &earlier.name;
            let header = format!("[groups.{name}]");
            let line = text.lines().position(|line| line.trim_start().starts_with(&header));
            let line = line.map_or(1, |line| line + 1);
            return Err(format!(
                "line {line}: {earlier} and {name} name the same group: join them"
            ));
        }
        let patterns = |written: Vec<Glob>| written.into_iter().map(|Glob(one)| one).collect();
        groups.push(DeviceGroup { name, actions: patterns(actions), drivers: patterns(drivers) });
    }
    Ok(groups)
}

#[cfg(test)]
mod tests;
