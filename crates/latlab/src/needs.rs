//! What a part needs of the machine that it runs on: a guest is given it, this machine has it or
//! not.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// What a probe, a load or a call needs beyond a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// The test driver.
    pub(crate) driver: bool,
    /// The driver's interrupt, of which there is one.
    pub(crate) interrupt: bool,
    /// Folders that are to lie on a disk.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// Modules of the kernel, by name; those built in are there already.
    pub(crate) modules: BTreeSet<&'static str>,
    /// Hardware that not every guest has.
    pub(crate) devices: BTreeSet<Device>,
}

/// Hardware that a guest gets only where something needs it: each device has interrupts and
/// drivers of its own, and so an effect on what others measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Device {
    /// A VGA card: the console is a picture.
    Display,
    /// A line on which the HPET's timers can interrupt.
    Hpet,
}

impl Needs {
    /// Nothing but the test driver.
    pub(crate) fn driver() -> Needs {
        Needs { driver: true, ..Needs::default() }
    }

    /// The test driver, and its interrupt.
    pub(crate) fn interrupt() -> Needs {
        Needs { interrupt: true, ..Needs::driver() }
    }

    /// A folder on a disk.
    pub(crate) fn folder(folder: impl Into<PathBuf>) -> Needs {
        Needs { folders: BTreeSet::from([folder.into()]), ..Needs::default() }
    }

    /// What both need.
    pub(crate) fn and(mut self, other: Needs) -> Needs {
        self.driver |= other.driver;
        self.interrupt |= other.interrupt;
        self.folders.extend(other.folders);
        self.modules.extend(other.modules);
        self.devices.extend(other.devices);
        self
    }
}
