//! Warnings to the reader of a record, and their codes.

use serde::{Deserialize, Serialize};

/// A warning to the reader of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The name of its [`WarningCode`]; a record of another version may have codes that this one does not know.
    pub code: String,
    /// A sentence.
    pub text: String,
}

impl Warning {
    /// Returns a warning.
    pub fn new(code: WarningCode, text: impl Into<String>) -> Warning {
        Warning { code: code.name().to_owned(), text: text.into() }
    }
}

/// What a warning is about; docs/record.md describes the codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningCode {
    /// The run was ended on request.
    Interrupted,
    /// The run had not ended when the record was written.
    Unfinished,
    /// A sample above `--stop-above` ended the run.
    StoppedAbove,
    /// A sample was above `--fail-above`.
    FailedAbove,
    /// A probe has no sample.
    NothingRecorded,
    /// A part of the probe was not reached.
    NotMeasured,
    /// A measured CPU went offline.
    CpuOffline,
    /// A load ended before the run.
    LoadEnded,
    /// A worker of a load had not ended some time after it was killed.
    LoadStuck,
    /// Something that this machine lacks was skipped, as requested.
    Skipped,
    /// Hardware counters cannot be read.
    NotAvailable,
    /// A probe measured without the test driver.
    NoTestDriver,
    /// The guest's kernel logged an error.
    KernelComplained,
    /// Output of the computer behind `ssh:`.
    RemoteStderr,
    /// The doctor has severe findings about this machine.
    Machine,
    /// The host, the firmware or heat took CPU time during the run.
    MachineDisturbed,
    /// Idle CPUs may enter states that take long to leave.
    IdleStates,
    /// Memory could not be locked: page faults were possible.
    MemoryNotLocked,
    /// Only present memory could be locked.
    MemoryPartlyLocked,
    /// The kernel's timers are too coarse for the device that is read.
    CoarseTimers,
    /// Somebody set the clock that the probe used.
    ClockSet,
    /// A value cannot be distinguished from the cost of measuring it.
    BelowOverhead,
    /// Injected delays began too late.
    LateDelay,
    /// The dispatch latency was measured without the test driver.
    DispatchLatency,
    /// More CPU time was asked for than real-time tasks may have.
    Throttled,
    /// A CPU was left out, as somebody has to do the rest of the work.
    Housekeeping,
    /// A measuring thread had page faults.
    PageFaults,
    /// A measuring thread was preempted.
    Preempted,
    /// A deadline task is not bound to its CPU.
    NotBound,
    /// A scan reached its time limit before all edges were refined.
    ScanLimit,
    /// A message of a mechanism.
    Adapt,
    /// Changes left by a killed run were restored before this run.
    Mended,
    /// Another program changed what `--set` had set.
    SettingChanged,
    /// Another tool measured it.
    OtherTool,
    /// Samples are above the range of that tool.
    AboveRange,
}

/// All codes with their names, in the order of [`WarningCode`].
const NAMES: [(WarningCode, &str); 35] = [
    (WarningCode::Interrupted, "interrupted"),
    (WarningCode::Unfinished, "unfinished"),
    (WarningCode::StoppedAbove, "stopped-above"),
    (WarningCode::FailedAbove, "failed-above"),
    (WarningCode::NothingRecorded, "nothing-recorded"),
    (WarningCode::NotMeasured, "not-measured"),
    (WarningCode::CpuOffline, "cpu-offline"),
    (WarningCode::LoadEnded, "load-ended"),
    (WarningCode::LoadStuck, "load-stuck"),
    (WarningCode::Skipped, "skipped"),
    (WarningCode::NotAvailable, "not-available"),
    (WarningCode::NoTestDriver, "no-test-driver"),
    (WarningCode::KernelComplained, "kernel-complained"),
    (WarningCode::RemoteStderr, "remote-stderr"),
    (WarningCode::Machine, "machine"),
    (WarningCode::MachineDisturbed, "machine-disturbed"),
    (WarningCode::IdleStates, "idle-states"),
    (WarningCode::MemoryNotLocked, "memory-not-locked"),
    (WarningCode::MemoryPartlyLocked, "memory-partly-locked"),
    (WarningCode::CoarseTimers, "coarse-timers"),
    (WarningCode::ClockSet, "clock-set"),
    (WarningCode::BelowOverhead, "below-overhead"),
    (WarningCode::LateDelay, "late-delay"),
    (WarningCode::DispatchLatency, "dispatch-latency"),
    (WarningCode::Throttled, "throttled"),
    (WarningCode::Housekeeping, "housekeeping"),
    (WarningCode::PageFaults, "page-faults"),
    (WarningCode::Preempted, "preempted"),
    (WarningCode::NotBound, "not-bound"),
    (WarningCode::ScanLimit, "scan-limit"),
    (WarningCode::Adapt, "adapt"),
    (WarningCode::Mended, "mended"),
    (WarningCode::SettingChanged, "setting-changed"),
    (WarningCode::OtherTool, "other-tool"),
    (WarningCode::AboveRange, "above-range"),
];

impl WarningCode {
    /// Every code.
    pub fn all() -> impl Iterator<Item = WarningCode> {
        NAMES.into_iter().map(|(code, _)| code)
    }

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
}

impl PartialEq<WarningCode> for String {
    fn eq(&self, code: &WarningCode) -> bool {
        self == code.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_codes() {
        for (at, (code, name)) in NAMES.into_iter().enumerate() {
            assert_eq!((code as usize, code.name()), (at, name));
        }
    }
}
