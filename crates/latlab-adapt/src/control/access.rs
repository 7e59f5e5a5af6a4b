//! Access of programs to requests.

use latlab_mechanism::configuration::Configuration;
use latlab_sys::peer::Peer;
use latlab_sys::root::Root;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Access of a program that has connected.
#[derive(Debug)]
pub(super) enum Access {
    /// It may send requests.
    Granted(Arc<Peer>),
    /// It may not, for this reason.
    Denied(String),
}

impl Access {
    /// The user of a program that may send requests.
    pub(super) fn user(&self) -> Option<u32> {
        match self {
            Access::Granted(peer) => Some(peer.user),
            Access::Denied(_) => None,
        }
    }

    /// The access of the program at the other end of `stream`.
    pub(super) fn of(stream: &UnixStream, configuration: &Configuration, root: &Root) -> Access {
        let group = configuration.allow.as_deref();
        match (Peer::of(stream), group) {
            (Ok(peer), _) if peer.is_root_or_in(root, group) => Access::Granted(Arc::new(peer)),
            (Ok(_), Some(group)) => {
                Access::Denied(format!("only root and members of the group {group} may ask"))
            }
            (Ok(_), None) => Access::Denied(
                "only root may ask: to allow a group as well, name it with allow in the \
                 configuration"
                    .to_owned(),
            ),
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Access::Denied(
                "your process is not visible to the daemon: is it in another container?".to_owned(),
            ),
            (Err(error), _) => {
                Access::Denied(format!("the daemon can't find out who you are: {error}"))
            }
        }
    }
}
