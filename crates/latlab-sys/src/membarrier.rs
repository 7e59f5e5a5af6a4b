//! Memory barriers on all CPUs, by interrupting them (`membarrier(2)`).

use rustix::thread::{MembarrierCommand, membarrier};
use std::io;

/// Registers this process: [`everywhere`] interrupts the CPUs that run it (Linux 4.16).
pub fn register() -> io::Result<()> {
    Ok(membarrier(MembarrierCommand::RegisterGlobalExpedited)?)
}

/// Interrupts every other CPU that runs a thread of a registered process.
pub fn everywhere() -> io::Result<()> {
    Ok(membarrier(MembarrierCommand::GlobalExpedited)?)
}
