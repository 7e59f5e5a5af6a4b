//! The test driver, and the refusal where it is missing.

use crate::failure::{Failure, FailureKind, Result};
use latlab_sys::driver::{Driver, Refusal};

/// Opens the driver.
pub fn open() -> Result<Driver> {
    Driver::open().map_err(|why| {
        let elsewhere = match why {
            Refusal::Absent => "; or use the laboratory, whose guests have it (--on lab:PROFILE)",
            _ => "",
        };
        Failure::unsupported(format!("{why}{elsewhere}"))
    })
}

/// A refusal because the driver is missing, with an alternative.
pub fn refused(why: Failure, what: &str, instead: &str) -> Failure {
    why.about(what).extended(FailureKind::Unsupported, &format!("; or use {instead}"))
}

/// Fails where the driver has no device that interrupts at a known time.
pub fn check_device() -> Result<()> {
    let version = open()?.version();
    if version.is_ok_and(|version| version.has_device()) {
        return Ok(());
    }
    let why = "no device here interrupts at a known time: QEMU's edu does, in instruction time (--on \
               lab:PROFILE)";
    Err(Failure::unsupported(why))
}
