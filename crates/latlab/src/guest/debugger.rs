//! Tells a booting kernel what it would otherwise measure at length, through QEMU's debugger port.

use super::facts::ApicTimer;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Gives the kernel the period of its local APIC timer, just before it would calibrate it, and
/// lets it go on. The guest stands still meanwhile, its time too.
///
/// The calibration waits 100 ms in a loop of `pause` instructions, each of which leaves QEMU's
/// translated code: half of the wall time of a boot. Silicon spares it by CPUID leaf 0x15, which
/// QEMU does not have; the variable is the one that this leaf fills (`native_calibrate_tsc`,
/// `arch/x86/kernel/tsc.c`). The value is what this kernel measured itself at its first boot.
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

/// GDB's remote serial protocol ("Debugging with GDB", appendix E), as far as it is needed.
struct Debugger(UnixStream);

impl Debugger {
    /// Sends a command and waits for its answer; one that begins with E is an error.
    fn ask(&mut self, command: &str) -> io::Result<String> {
        let sum = command.bytes().fold(0_u8, u8::wrapping_add);
        self.0.write_all(format!("${command}#{sum:02x}").as_bytes())?;
        let answer = self.answer()?;
        if answer.is_empty() || answer.starts_with('E') {
            return Err(io::Error::other(format!("{command} was answered with '{answer}'")));
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
    fn the_period_is_written_between_a_stop_and_a_start() {
        let (near, far) = UnixStream::pair().unwrap();
        let timer = ApicTimer { setup: 0xff10, variable: 0xff20, period: 4_000_000 };
        let preset = preset(near, timer);
        let mut far = Debugger(far);
        let mut asked = Vec::new();
        for answer in ["OK", "T05thread:01;", "OK", "OK", "OK"] {
            asked.push(far.answer().unwrap());
            far.0.write_all(format!("${answer}#00").as_bytes()).unwrap();
        }
        preset.join().unwrap().unwrap();
        assert_eq!(asked, ["Z1,ff10,1", "c", "Mff20,4:00093d00", "z1,ff10,1", "D"]);
    }

    #[test]
    fn an_error_is_one_and_so_is_silence() {
        for answer in ["$E22#00", "$#00", ""] {
            let (near, mut far) = UnixStream::pair().unwrap();
            let preset = preset(near, ApicTimer { setup: 1, variable: 2, period: 3 });
            far.write_all(answer.as_bytes()).unwrap();
            far.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(preset.join().unwrap().is_err(), "{answer}");
        }
    }
}
