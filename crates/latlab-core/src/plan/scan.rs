//! The plan of one scan: the call, and how finely it is scanned.

use super::Part;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The call that is scanned, and how finely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanPlan {
    /// The call with its parameters.
    pub call: Part,
    /// Number of moments of the first grid, spread evenly over the call.
    pub points: u32,
    /// The precision to which the edges of non-preemptible sections are located.
    pub resolution: Nanos,
    /// Maximum number of measurements at one moment, where they do not agree on a minimum before.
    pub repeat: u32,
    /// The interrupt; none for the one that suits the call and the machine.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interrupt: Option<Interrupt>,
    /// The time after which edges are not located more precisely.
    pub limit: Nanos,
}

/// The interrupt that wakes the high-priority task during the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interrupt {
    /// The timer on which the high-priority task sleeps.
    Timer,
    /// A timer of the test driver, whose handler also reads the clock.
    Driver,
    /// The interrupt of a device that the test driver triggers.
    Device,
    /// The same, but its IRQ thread wakes the task.
    #[serde(rename = "device-thread")]
    DeviceThread,
}

impl ScanPlan {
    /// Returns the default plan for a call. In instruction time measurements have no noise, so that
    /// edges are located more precisely.
    pub fn usual(call: Part, in_instructions: bool) -> ScanPlan {
        let (resolution, repeat, limit) = if in_instructions {
            (Nanos(50), 6, Nanos::from_secs(120))
        } else {
            (Nanos::from_micros(1), 40, Nanos::from_secs(45))
        };
        ScanPlan { call, points: 100, resolution, repeat, interrupt: None, limit }
    }
}

impl Interrupt {
    /// All interrupts, with the words that users write.
    pub const ALL: [(&'static str, Interrupt); 4] = [
        ("timer", Interrupt::Timer),
        ("driver", Interrupt::Driver),
        ("device", Interrupt::Device),
        ("device-thread", Interrupt::DeviceThread),
    ];

    /// Whether it is the interrupt of a device.
    pub fn is_device(self) -> bool {
        matches!(self, Interrupt::Device | Interrupt::DeviceThread)
    }
}
