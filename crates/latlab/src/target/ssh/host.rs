//! The name of a host, as the user types it after `--on`.

use latlab_part::failure::{Failure, Result};
use std::fmt;

/// Destination and port of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// `[USER@]HOST`, an address of IPv6 without its brackets.
    destination: String,
    /// None: the user's own configuration decides.
    port: Option<u16>,
}

impl Host {
    /// The host of the target `ssh:[USER@]HOST[:PORT]`.
    pub fn of(target: &str) -> Result<Host> {
        let name = target.strip_prefix("ssh:").unwrap_or_default();
        let failed = |why: &str| Failure::failed(format!("--on {target}: {why}"));
        let (user, place) = match name.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, name),
        };
        let (host, port) = split(place).ok_or_else(|| {
            failed("write an address with colons in brackets, as ssh:root@[fe80::1%eth0]:22")
        })?;
        let words = [user.unwrap_or("none"), host];
        if words.contains(&"") {
            return Err(failed("it names no host: write ssh:[USER@]HOST[:PORT]"));
        }
        // Such a word would be an option of ssh's, or several words.
        if words.iter().any(|word| word.starts_with('-')) {
            return Err(failed("no user and no host begins with '-'"));
        }
        if name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(failed("no user and no host has a blank in its name"));
        }
        let port = match port.map(str::parse) {
            None => None,
            Some(Ok(port)) if port > 0 => Some(port),
            Some(_) => return Err(failed("a port is a number from 1 to 65535")),
        };
        let destination = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
        Ok(Host { destination, port })
    }

    /// The words after `ssh` and its options.
    pub fn words(&self) -> Vec<String> {
        let port = self.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]);
        port.chain([self.destination.clone()]).collect()
    }

    /// The ssh command that reaches it.
    pub fn command(&self) -> String {
        format!("ssh {}", self.words().join(" "))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.destination)
    }
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT` in two. None for an address that could
/// end in a port or not.
fn split(place: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest {
            "" => Some((host, None)),
            _ => rest.strip_prefix(':').map(|port| (host, Some(port))),
        };
    }
    match place.split_once(':') {
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
        None => Some((place, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(target: &str) -> String {
        Host::of(target).unwrap().words().join(" ")
    }

    #[test]
    fn user_and_port_may_be_left_to_the_configuration() {
        assert_eq!(words("ssh:board"), "board");
        assert_eq!(words("ssh:root@board"), "root@board");
        assert_eq!(words("ssh:board:2222"), "-p 2222 board");
        assert_eq!(words("ssh:root@10.0.0.7:22"), "-p 22 root@10.0.0.7");
        assert_eq!(words("ssh:me@example@board"), "me@example@board");
        assert_eq!(words("ssh:root@[fe80::1%eth0]"), "root@fe80::1%eth0");
        assert_eq!(words("ssh:[::1]:2222"), "-p 2222 ::1");
    }

    #[test]
    fn host_refuses_invalid_names_in_one_sentence() {
        for (target, said) in [
            ("ssh", "no host"),
            ("ssh:", "no host"),
            ("ssh:root@", "no host"),
            ("ssh:@board", "no host"),
            ("ssh::22", "no host"),
            ("ssh:[]", "no host"),
            ("ssh:-oProxyCommand=x", "'-'"),
            ("ssh:-l@board", "'-'"),
            ("ssh:root@-v", "'-'"),
            ("ssh:a board", "blank"),
            ("ssh:board\n", "blank"),
            ("ssh:board:", "port"),
            ("ssh:board:0", "port"),
            ("ssh:board:65536", "port"),
            ("ssh:board:ssh", "port"),
            ("ssh:fe80::1", "brackets"),
            ("ssh:[fe80::1", "brackets"),
            ("ssh:[fe80::1]22", "brackets"),
        ] {
            let sentence = Host::of(target).unwrap_err().to_string();
            assert!(sentence.contains(said), "{target}: {sentence}");
        }
    }
}
