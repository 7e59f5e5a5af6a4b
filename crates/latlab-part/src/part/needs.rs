//! Needs of a part beyond a kernel: a guest is equipped with them, another machine may lack them.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Needs of a part beyond a kernel.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// The test driver.
    pub driver: bool,
    /// The test driver's only interrupt.
    pub interrupt: bool,
    /// Folders that must lie on a disk.
    pub folders: BTreeSet<PathBuf>,
    /// Kernel modules by name, unless they are built in.
    pub modules: BTreeSet<&'static str>,
    /// Commands that start programs of the machine, each as its words; a guest gets the programs.
    pub commands: Vec<Vec<String>>,
    /// Models of caches and TLBs, which only guests in instruction time have.
    pub models: bool,
    /// Hardware that not every guest gets.
    pub devices: BTreeSet<Device>,
}

/// Hardware that a guest gets only where a part needs it: each device brings interrupts and a
/// driver, which affect what other parts measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// A VGA card, for a console with pixels.
    Display,
    /// An interrupt line for the HPET's timers.
    Hpet,
    /// A real-time clock.
    Rtc,
}

impl Needs {
    /// The test driver only.
    pub fn driver() -> Needs {
        Needs { driver: true, ..Needs::default() }
    }

    /// The test driver and its interrupt.
    pub fn interrupt() -> Needs {
        Needs { interrupt: true, ..Needs::driver() }
    }

    /// A folder on a disk.
    pub fn folder(folder: impl Into<PathBuf>) -> Needs {
        Needs { folders: BTreeSet::from([folder.into()]), ..Needs::default() }
    }

    /// The union of both.
    #[must_use]
    pub fn and(mut self, other: Needs) -> Needs {
        self.driver |= other.driver;
        self.interrupt |= other.interrupt;
        self.folders.extend(other.folders);
        self.modules.extend(other.modules);
        self.commands.extend(other.commands);
        self.models |= other.models;
        self.devices.extend(other.devices);
        self
    }
}
