//! The network namespace of loads, which keeps their traffic off the machine's network.

use latlab_part::failure::{Failure, Result};
use latlab_sys::namespace;
use std::io::ErrorKind::PermissionDenied;

/// Refuses a load where it can't have a network namespace.
pub(super) fn check(load: &str) -> Result<()> {
    let why = match namespace::check_network() {
        Ok(()) => return Ok(()),
        Err(e) if e.kind() == PermissionDenied => "needs root: run latlab as root".to_owned(),
        Err(e) => {
            format!("can't be created ({e}): use a kernel with CONFIG_NET_NS (--on lab:PROFILE)")
        }
    };
    Err(Failure::unsupported(format!("{load}: its network namespace {why}")))
}
