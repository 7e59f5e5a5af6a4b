//! The test driver, and what to do where it is missing.

use crate::failure::{Failure, Result};
use latlab_sys::driver::{Driver, Refusal};

/// Opens the driver.
pub(crate) fn open() -> Result<Driver> {
    Driver::open().map_err(|why| {
        let elsewhere = match why {
            Refusal::Absent => {
                "; or go to the laboratory, which brings it along (--on lab:PROFILE)"
            }
            _ => "",
        };
        Failure::Unsupported(format!("{why}{elsewhere}"))
    })
}

/// The refusal to do something without the driver, and what to use instead.
pub(crate) fn refused(why: Failure, what: &str, instead: &str) -> Failure {
    match why.about(what) {
        Failure::Unsupported(why) => Failure::Unsupported(format!("{why}; or use {instead}")),
        other => other,
    }
}

/// Refuses where the driver has no device that interrupts.
pub(crate) fn check_device() -> Result<()> {
    let version = open()?.version();
    if version.is_ok_and(|version| version.has_device()) {
        return Ok(());
    }
    let why = "there is no device here that interrupts at a known time: that is QEMU's edu, in \
               instruction time (--on lab:PROFILE)";
    Err(Failure::Unsupported(why.to_owned()))
}
