//! The network that loads fill: one of their own, so that the machine's is left alone.

use crate::failure::{Failure, Result};
use latlab_sys::namespace;
use std::io::ErrorKind::PermissionDenied;

/// Refuses where a load may not have a network of its own.
pub(super) fn check(load: &str) -> Result<()> {
    let why = match namespace::try_network() {
        Ok(()) => return Ok(()),
        Err(e) if e.kind() == PermissionDenied => "needs root: run latlab as root".to_owned(),
        Err(e) => {
            format!("can't be had ({e}): take a kernel with CONFIG_NET_NS (--on lab:PROFILE)")
        }
    };
    Err(Failure::Unsupported(format!("{load}: a network of its own {why}")))
}
