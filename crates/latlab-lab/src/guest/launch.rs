//! The way of a guest to its job: it boots or is restored, stops, and receives the job. All of this
//! goes through QEMU's debugger port.

use super::debugger::Debugger;
use super::output;
use crate::arch::Overwritten;
use crate::snapshot::{Draft, Snapshot, Stopped};
use latlab_measure::message::ApicTimer;
use latlab_sys::mailbox::{CHUNK, DATA, STOPS};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Where a guest starts.
#[derive(Debug)]
pub(crate) enum Start {
    /// It boots.
    Boot,
    /// It boots, and the stopped guest is kept.
    BootAndKeep(Draft),
    /// It is restored.
    Restore(Snapshot),
}

/// A guest before its job. The files are those that QEMU has open.
pub(super) struct Launch {
    pub(super) start: Start,
    /// The known timer calibration, which a boot then skips.
    pub(super) timer: Option<ApicTimer>,
    pub(super) memory: File,
    /// The part of it that QEMU overwrote when it started.
    pub(super) overwritten: Option<Overwritten>,
    /// The disk image on which QEMU stores the state of devices.
    pub(super) devices: File,
    pub(super) console: File,
    /// QEMU's name of a device to plug in at the stop.
    pub(super) device: Option<&'static str>,
    /// The message for the mailbox.
    pub(super) job: Vec<u8>,
}

/// How a launch ends: with the reason why the guest was not kept, if it should have been.
type Ended = io::Result<Option<io::Error>>;

/// A launch under way. Dropping it waits for its end.
pub(super) struct Launching {
    /// Whether the guest is restored.
    pub(super) restores: bool,
    thread: Option<JoinHandle<Ended>>,
}

/// Launches a guest through this port.
pub(super) fn launch(port: UnixStream, launch: Launch) -> io::Result<Launching> {
    let restores = matches!(launch.start, Start::Restore(_));
    let carry_out = move || launch.carry_out(Debugger::new(port)?);
    Ok(Launching { restores, thread: Some(Builder::new().spawn(carry_out)?) })
}

impl Launching {
    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end.
    pub(super) fn join(&mut self) -> Ended {
        let ended = self.thread.take().map_or(Ok(Ok(None)), JoinHandle::join);
        ended.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }
}

impl Drop for Launching {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// The name of the state on the disk image.
const NAME: &str = "stopped";

impl Launch {
    fn carry_out(self, mut debugger: Debugger) -> Ended {
        let mut kept = Ok(());
        let mut draft = None;
        match self.start {
            Start::Boot => drop(boot(&mut debugger, self.timer)?),
            Start::BootAndKeep(new) => {
                let cpu = boot(&mut debugger, self.timer)?;
                kept = save(&mut debugger).and_then(|()| {
                    let console = output::text(&self.console)?;
                    new.write(&self.memory, &self.devices, Stopped { cpu, console })
                });
                draft = Some(new);
            }
            Start::Restore(snapshot) => {
                restore(&mut debugger, &snapshot.stopped, &self.memory, self.overwritten)?;
            }
        }
        if let Some(device) = self.device {
            debugger.command(&format!("device_add {device}"))?;
        }
        deliver(&mut debugger, &self.job)?;
        debugger.detach()?;
        if let (Some(draft), Ok(())) = (draft, &kept) {
            kept = draft.publish();
        }
        Ok(kept.err())
    }
}

/// Boots the guest up to its first stop. Returns the virtual CPU that reached it.
fn boot(debugger: &mut Debugger, timer: Option<ApicTimer>) -> io::Result<String> {
    if let Some(timer) = timer {
        preset(debugger, timer)?;
    }
    debugger.run_to(STOPS[0])
}

/// Writes the period of the local APIC timer into the kernel just before it would calibrate it,
/// and lets it continue. The guest is stopped meanwhile, and its clock with it.
///
/// The calibration waits 100 ms in a loop of `pause` instructions, each of which leaves QEMU's
/// translated code: half of the wall-clock time of a boot. Hardware avoids the calibration by CPUID
/// leaf 0x15, which QEMU lacks. The kernel stores this leaf in the same variable
/// (`native_calibrate_tsc`, `arch/x86/kernel/tsc.c`). The value is the one that this kernel
/// measured at its first boot.
fn preset(debugger: &mut Debugger, timer: ApicTimer) -> io::Result<()> {
    debugger.run_to(timer.setup)?;
    debugger.write(timer.variable, &timer.period.to_le_bytes())
}

/// Stores the state of the stopped guest's devices on the disk image. Its memory is shared with
/// latlab, and not stored with them.
fn save(debugger: &mut Debugger) -> io::Result<()> {
    debugger.command("migrate_set_capability x-ignore-shared on")?;
    debugger.command(&format!("savevm {NAME}"))
}

/// Restores a stopped guest. Its memory is the snapshot's, except for a part that QEMU overwrote.
fn restore(
    debugger: &mut Debugger,
    stopped: &Stopped,
    memory: &File,
    overwritten: Option<Overwritten>,
) -> io::Result<()> {
    /// Far more than it takes on a busy host.
    const PATIENCE: Duration = Duration::from_mins(1);
    debugger.set_patience(Some(PATIENCE))?;
    debugger.command("migrate_set_capability x-ignore-shared on")?;
    debugger.command(&format!("loadvm {NAME}"))?;
    if let Some(Overwritten { address, bytes }) = overwritten {
        let mut beginning = vec![0; bytes];
        memory.read_exact_at(&mut beginning, 0)?;
        debugger.write_physical(address, &beginning)?;
    }
    debugger.choose_cpu(&stopped.cpu)?;
    debugger.set_patience(None)
}

/// Puts a message into the guest's mailbox. The guest stops for each part that fits.
fn deliver(debugger: &mut Debugger, message: &[u8]) -> io::Result<()> {
    let mut left = message.len();
    for (part, next) in message.chunks(CHUNK).zip(STOPS.into_iter().cycle().skip(1)) {
        left -= part.len();
        let numbers = [part.len() as u64, left as u64].map(u64::to_le_bytes).concat();
        debugger.write(DATA, &[&numbers, part].concat())?;
        if left > 0 {
            debugger.run_to(next)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::debugger::tests::Answering;
    use latlab_sys::mailbox::HEADER;

    #[test]
    fn preset_writes_the_period_between_stop_and_continue() {
        let timer = ApicTimer { setup: 0xff10, variable: 0xff20, period: 4_000_000 };
        let mut qemu = Answering::with(&["OK", "T05thread:01;", "OK", "OK"]);
        preset(&mut qemu.debugger, timer).unwrap();
        assert_eq!(qemu.asked(), ["Z1,ff10,1", "c", "z1,ff10,1", "Mff20,4:00093d00"]);
    }

    #[test]
    fn deliver_stops_once_for_each_further_part() {
        let writes = (HEADER + CHUNK).div_ceil(2000);
        let stop = vec!["OK", "T05thread:01;", "OK"];
        let answers = [vec!["OK"; writes], stop, vec!["OK"]].concat();
        let mut qemu = Answering::with(&answers);
        deliver(&mut qemu.debugger, &vec![7; CHUNK + 1]).unwrap();
        let asked = qemu.asked();
        let stops: Vec<&String> = asked.iter().filter(|word| word.starts_with('Z')).collect();
        assert_eq!(stops, [&format!("Z1,{:x},1", STOPS[1])]);
        let last = asked.last().unwrap();
        assert_eq!(*last, format!("M{DATA:x},11:0100000000000000000000000000000007"));
    }
}
