//! Presets the timer calibration of a booting kernel, through QEMU's debugger port.

use crate::message::ApicTimer;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Writes the period of the local APIC timer into the kernel just before it would calibrate it,
/// and lets it continue. The guest is stopped meanwhile, and its clock with it.
///
/// The calibration waits 100 ms in a loop of `pause` instructions, each of which leaves QEMU's
/// translated code: half of the wall-clock time of a boot. Hardware avoids it by CPUID leaf 0x15,
/// which QEMU lacks; the variable is the one that this leaf sets (`native_calibrate_tsc`,
/// `arch/x86/kernel/tsc.c`). The value is what this kernel measured at its first boot.
pub(super) fn preset(port: UnixStream, timer: ApicTimer) -> JoinHandle<io::Result<()>> {
    std::thread::spawn(move || {
        let mut debugger = Debugger(port);
        let setup = format!("1,{:x},1", timer.setup);
        debugger.ask(&format!("Z{setup}"))?;
        debugger.ask("c")?;
        let bytes: String = timer.period.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
        debugger.ask(&format!("M{:x},4:{bytes}", timer.variable))?;
        debugger.ask(&format!("z{setup}"))?;
        debugger.ask("D").map(drop)
    })
}

/// GDB's remote serial protocol ("Debugging with GDB", appendix E), the commands needed here.
struct Debugger(UnixStream);

impl Debugger {
    /// Sends a command and waits for its answer; one that begins with E is an error.
    fn ask(&mut self, command: &str) -> io::Result<String> {
        let sum = command.bytes().fold(0_u8, u8::wrapping_add);
        self.0.write_all(format!("${command}#{sum:02x}").as_bytes())?;
        let answer = self.answer()?;
        if answer.is_empty() || answer.starts_with('E') {
            return Err(io::Error::other(format!("the answer to {command} is '{answer}'")));
        }
        Ok(answer)
    }

    fn answer(&mut self) -> io::Result<String> {
        while self.byte()? != b'$' {}
        let mut answer = String::new();
        loop {
            match self.byte()? {
                b'#' => break,
                byte => answer.push(char::from(byte)),
            }
        }
        self.0.read_exact(&mut [0; 2])?;
        self.0.write_all(b"+")?;
        Ok(answer)
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preset_writes_the_period_between_stop_and_continue() {
        let (ours, qemus) = UnixStream::pair().unwrap();
        let timer = ApicTimer { setup: 0xff10, variable: 0xff20, period: 4_000_000 };
        let preset = preset(ours, timer);
        let mut qemu = Debugger(qemus);
        let mut asked = Vec::new();
        for answer in ["OK", "T05thread:01;", "OK", "OK", "OK"] {
            asked.push(qemu.answer().unwrap());
            qemu.0.write_all(format!("${answer}#00").as_bytes()).unwrap();
        }
        preset.join().unwrap().unwrap();
        assert_eq!(asked, ["Z1,ff10,1", "c", "Mff20,4:00093d00", "z1,ff10,1", "D"]);
    }

    #[test]
    fn preset_fails_on_an_error_or_no_answer() {
        for answer in ["$E22#00", "$#00", ""] {
            let (ours, mut qemus) = UnixStream::pair().unwrap();
            let preset = preset(ours, ApicTimer { setup: 1, variable: 2, period: 3 });
            qemus.write_all(answer.as_bytes()).unwrap();
            qemus.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(preset.join().unwrap().is_err(), "{answer}");
        }
    }
}
