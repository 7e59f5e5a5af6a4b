//! QEMU's debugger port: GDB's remote serial protocol ("Debugging with GDB", appendix E), the
//! commands needed here.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Characters of the longest answer that is accepted, and bytes of the longest text of the monitor.
/// QEMU's own limit is 131 104.
const LONGEST: usize = 1 << 18;

/// The connection to a guest's debugger port.
pub struct Debugger {
    port: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Debugger {
    /// The debugger at the other end of this socket.
    pub fn new(port: UnixStream) -> io::Result<Debugger> {
        Ok(Debugger { answers: BufReader::new(port.try_clone()?), port })
    }

    /// Lets the stopped guest continue until it reaches this address. Returns the virtual CPU that
    /// reached it. The guest must not be stopped at the same address.
    ///
    /// A guest in instruction time stops there in one state only, in QEMU's record mode: the
    /// thread that executes it marks itself stopped while it holds the lock without which the main
    /// loop can't go on, and the main loop then advances the clock to the next timer before it
    /// handles the stop (`cpu_handle_guest_debug`, `softmmu/cpus.c`; `main_loop_wait`,
    /// `util/main-loop.c`, QEMU 7.2).
    pub fn run_to(&mut self, address: u64) -> io::Result<String> {
        self.ask(&format!("Z1,{address:x},1"))?;
        let answer = self.ask("c")?;
        let cpu = answer.split_once("thread:").and_then(|(_, cpu)| cpu.split(';').next());
        let Some(cpu) = cpu.filter(|_| answer.starts_with('T')) else {
            return Err(io::Error::other(format!("it did not stop: {answer}")));
        };
        self.ask(&format!("z1,{address:x},1"))?;
        Ok(cpu.to_owned())
    }

    /// Writes bytes at a virtual address of the stopped guest.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> io::Result<()> {
        /// Bytes in one packet; QEMU's limit is 4096 characters.
        const PART: usize = 2000;
        /// Commands that are sent before the answer to the first of them is read.
        const AHEAD: usize = 32;
        let parts: Vec<_> = bytes.chunks(PART).zip((address..).step_by(PART)).collect();
        for parts in parts.chunks(AHEAD) {
            let command = |(part, address): &(&[u8], u64)| {
                packet(&format!("M{address:x},{:x}:{}", part.len(), hex(part)))
            };
            self.port.write_all(parts.iter().map(command).collect::<String>().as_bytes())?;
            for (_, address) in parts {
                self.answer(&format!("M{address:x}"))?;
            }
        }
        Ok(())
    }

    /// Writes bytes at a physical address of the stopped guest.
    pub(super) fn write_physical(&mut self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.ask("Qqemu.PhyMemMode:1")?;
        self.write(address, bytes)?;
        self.ask("Qqemu.PhyMemMode:0").map(drop)
    }

    /// Chooses the virtual CPU whose virtual addresses count, by the name that [`Self::run_to`]
    /// returned.
    pub(super) fn choose_cpu(&mut self, cpu: &str) -> io::Result<()> {
        self.ask(&format!("Hg{cpu}")).map(drop)
    }

    /// Carries out a command of QEMU's monitor. Any output of the command is an error.
    pub fn command(&mut self, command: &str) -> io::Result<()> {
        let mut answer = self.ask(&format!("qRcmd,{}", hex(command.as_bytes())))?;
        let mut printed = Vec::new();
        while answer != "OK" {
            let Some(bytes) = answer.strip_prefix('O').and_then(unhex) else {
                return Err(io::Error::other(format!("the answer to {command} is '{answer}'")));
            };
            printed.extend(bytes);
            if printed.len() > LONGEST {
                return Err(too_long());
            }
            answer = self.answer(command)?;
        }
        if printed.is_empty() {
            return Ok(());
        }
        Err(io::Error::other(String::from_utf8_lossy(&printed).trim().to_owned()))
    }

    /// Sets how long an answer may take.
    pub(super) fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.port.set_read_timeout(patience)
    }

    /// Lets the guest continue without a debugger.
    pub(super) fn detach(mut self) -> io::Result<()> {
        self.ask("D").map(drop)
    }

    /// Sends a command and waits for its answer.
    fn ask(&mut self, command: &str) -> io::Result<String> {
        self.port.write_all(packet(command).as_bytes())?;
        self.answer(command)
    }

    /// Waits for the answer to a command; one that begins with E is an error.
    fn answer(&mut self, command: &str) -> io::Result<String> {
        let answer = self.packet()?;
        if answer.is_empty() || answer.starts_with('E') {
            return Err(io::Error::other(format!("the answer to {command} is '{answer}'")));
        }
        Ok(answer)
    }

    /// Receives a packet. The next command acknowledges it.
    fn packet(&mut self) -> io::Result<String> {
        while self.byte()? != b'$' {}
        let mut answer = String::new();
        loop {
            match self.byte()? {
                b'#' => break,
                _ if answer.len() > LONGEST => return Err(too_long()),
                byte => answer.push(char::from(byte)),
            }
        }
        self.answers.read_exact(&mut [0; 2])?;
        Ok(answer)
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.answers.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "QEMU's answer is too long")
}

/// A command with its checksum, and the acknowledgement of the answer to the last one.
fn packet(command: &str) -> String {
    let sum = command.bytes().fold(0_u8, u8::wrapping_add);
    format!("+${command}#{sum:02x}")
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |nth: usize| u8::from_str_radix(text.get(2 * nth..2 * nth + 2)?, 16).ok();
    (0..text.len().div_ceil(2)).map(pair).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::thread::JoinHandle;

    /// A debugger whose other end gives these answers, and notes the requests.
    pub(in crate::guest) struct Answering {
        pub(in crate::guest) debugger: Debugger,
        asked: JoinHandle<Vec<String>>,
    }

    impl Answering {
        pub(in crate::guest) fn with(answers: &[&str]) -> Answering {
            let (ours, qemus) = UnixStream::pair().unwrap();
            let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
            let asked = std::thread::spawn(move || {
                let (mut qemu, mut asked) = (Debugger::new(qemus).unwrap(), Vec::new());
                for answer in answers {
                    let Ok(question) = qemu.packet() else { break };
                    asked.push(question);
                    qemu.port.write_all(format!("${answer}#00").as_bytes()).unwrap();
                }
                asked
            });
            Answering { debugger: Debugger::new(ours).unwrap(), asked }
        }

        pub(in crate::guest) fn asked(self) -> Vec<String> {
            drop(self.debugger);
            self.asked.join().unwrap()
        }
    }

    #[test]
    fn run_to_returns_the_cpu_and_removes_the_breakpoint() {
        let mut qemu = Answering::with(&["OK", "T05thread:02;", "OK"]);
        assert_eq!(qemu.debugger.run_to(0xff10).unwrap(), "02");
        assert_eq!(qemu.asked(), ["Z1,ff10,1", "c", "z1,ff10,1"]);
        let mut qemu = Answering::with(&["OK", "W00"]);
        assert!(qemu.debugger.run_to(1).unwrap_err().to_string().contains("W00"));
    }

    #[test]
    fn command_fails_with_what_the_monitor_printed() {
        let said = hex(b"Error: no snapshot\r\n");
        let mut qemu = Answering::with(&["OK"]);
        qemu.debugger.command("savevm x").unwrap();
        assert_eq!(qemu.asked(), ["qRcmd,73617665766d2078"]);
        let (ours, qemus) = UnixStream::pair().unwrap();
        let mut qemu = Debugger::new(qemus).unwrap();
        qemu.port.write_all(format!("$O{said}#00$OK#00").as_bytes()).unwrap();
        let error = Debugger::new(ours).unwrap().command("loadvm x").unwrap_err().to_string();
        assert_eq!(error, "Error: no snapshot");
    }

    #[test]
    fn answer_without_an_end_is_refused() {
        let (ours, mut qemus) = UnixStream::pair().unwrap();
        let endless = std::thread::spawn(move || while qemus.write_all(b"$OOOO").is_ok() {});
        let error = Debugger::new(ours).unwrap().command("savevm x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        endless.join().unwrap();
    }

    #[test]
    fn write_fails_on_an_error_or_no_answer() {
        for answer in ["$E22#00", "$#00", ""] {
            let (ours, mut qemus) = UnixStream::pair().unwrap();
            qemus.write_all(answer.as_bytes()).unwrap();
            qemus.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(Debugger::new(ours).unwrap().write(2, b"3").is_err(), "{answer}");
        }
    }
}
