//! The system console: the LEDs of its keyboard and its virtual terminals
//! (`ioctl_console(2)`).

use latlab_core::time::Nanos;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// The device file.
pub const PATH: &str = "/dev/tty0";

/// The terminal that loads switch to. Users have the first ones; this is the last for which the
/// kernel reports whether it is in use.
pub const SPARE: u16 = 15;

/// The LED of caps lock, in [`Console::show`].
pub const CAPS_LOCK: u8 = 4;
/// Has the LEDs follow the state of the keyboard again.
const FOLLOW: u8 = 0xff;

// As in `linux/kd.h` and `linux/vt.h`.
const KDGETLED: libc::Ioctl = 0x4B31;
const KDSETLED: libc::Ioctl = 0x4B32;
const KDGETMODE: libc::Ioctl = 0x4B3B;
const VT_GETSTATE: libc::Ioctl = 0x5603;
const VT_ACTIVATE: libc::Ioctl = 0x5606;
const VT_WAITACTIVE: libc::Ioctl = 0x5607;
const VT_DISALLOCATE: libc::Ioctl = 0x5608;
const KD_TEXT: libc::c_int = 0;

/// As `struct vt_stat` in `linux/vt.h`.
#[derive(Default)]
#[repr(C)]
struct State {
    active: u16,
    signal: u16,
    /// A bit for each of the first terminals that is open.
    in_use: u16,
}

/// The open console.
#[derive(Debug)]
pub struct Console(File);

impl Console {
    /// Opens the device at `path`. It does not become the controlling terminal.
    pub fn open(path: &Path) -> io::Result<Console> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = File::options();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK);
        options.open(path).map(Console)
    }

    /// The LEDs that are on.
    pub fn leds(&self) -> io::Result<u8> {
        let mut leds = 0;
        self.ask(KDGETLED, &mut leds).map(|()| leds)
    }

    /// Switches exactly these LEDs on, whatever the state of the keyboard is.
    pub fn show(&self, leds: u8) -> io::Result<()> {
        self.tell(KDSETLED, leds.into())
    }

    /// The number of the terminal that is shown.
    pub fn active(&self) -> io::Result<u16> {
        self.state().map(|state| state.active)
    }

    /// Whether the terminal [`SPARE`] is open or shown.
    pub fn spare_is_taken(&self) -> io::Result<bool> {
        let state = self.state()?;
        Ok(state.active == SPARE || state.in_use & (1 << SPARE) != 0)
    }

    fn state(&self) -> io::Result<State> {
        let mut state = State::default();
        self.ask(VT_GETSTATE, &mut state).map(|()| state)
    }

    /// Whether the terminal that is shown is in graphics mode.
    pub fn is_graphical(&self) -> io::Result<bool> {
        let mut mode: libc::c_int = KD_TEXT;
        self.ask(KDGETMODE, &mut mode).map(|()| mode != KD_TEXT)
    }

    /// Switches to a terminal, and waits until it is shown. `Interrupted` if a signal ended the
    /// wait.
    pub fn switch_to(&self, number: u16) -> io::Result<()> {
        self.tell(VT_ACTIVATE, number)?;
        self.tell(VT_WAITACTIVE, number)
    }

    fn tell(&self, call: libc::Ioctl, number: u16) -> io::Result<()> {
        let number = libc::c_ulong::from(number);
        // SAFETY: these calls take a number and no pointer.
        crate::checked(unsafe { libc::ioctl(self.0.as_raw_fd(), call, number) }).map(drop)
    }

    fn ask<T>(&self, call: libc::Ioctl, answer: &mut T) -> io::Result<()> {
        let answer: *mut T = answer;
        // SAFETY: each call is made with the type that it writes.
        crate::checked(unsafe { libc::ioctl(self.0.as_raw_fd(), call, answer) }).map(drop)
    }
}

/// A setting of the console that runs change and restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The LEDs that are on.
    Leds,
    /// The terminal that is shown.
    Active,
}

impl Setting {
    /// The present value.
    pub(crate) fn read(self, path: &Path) -> Option<String> {
        let console = Console::open(path).ok()?;
        let number = match self {
            Setting::Leds => console.leds().ok()?.into(),
            Setting::Active => console.active().ok()?,
        };
        Some(number.to_string())
    }

    /// Restores a value.
    pub(crate) fn put(self, path: &Path, value: &str) -> io::Result<()> {
        let number: u16 = value.parse().map_err(io::Error::other)?;
        let console = Console::open(path)?;
        match self {
            Setting::Leds => put_leds(&console, u8::try_from(number).map_err(io::Error::other)?),
            Setting::Active => {
                console.tell(VT_ACTIVATE, number)?;
                wait_until(|| Ok(console.active()? == number))?;
                // This descriptor belongs to the terminal shown until now, and keeps it in use.
                drop(console);
                free_spare(&Console::open(path)?);
                Ok(())
            }
        }
    }
}

/// Frees the terminal [`SPARE`] as soon as the kernel reports it as closed. Where another process
/// has it open, it stays.
fn free_spare(console: &Console) {
    if wait_until(|| Ok(!console.spare_is_taken()?)).is_ok() {
        // Fails with EBUSY for a terminal that was never allocated.
        let _ = console.tell(VT_DISALLOCATE, SPARE);
    }
}

/// Has the LEDs follow the state of the keyboard. If they then differ, they had been set before:
/// sets them.
fn put_leds(console: &Console, leds: u8) -> io::Result<()> {
    console.show(FOLLOW)?;
    let shown = || Ok(console.leds()? == leds);
    wait_until(shown).or_else(|_| {
        console.show(leds)?;
        wait_until(shown)
    })
}

/// Waits until the console has carried out its order, at most 500 ms.
fn wait_until(done: impl Fn() -> io::Result<bool>) -> io::Result<()> {
    const PATIENCE: Nanos = Nanos::from_millis(500);
    let deadline = crate::clock::now() + PATIENCE;
    while !done()? {
        if crate::clock::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        crate::clock::sleep_for(Nanos::from_millis(1));
    }
    Ok(())
}
