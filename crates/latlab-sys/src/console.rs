//! The console of the machine: the LEDs of its keyboard, and its virtual terminals
//! (`ioctl_console(2)`).

use latlab_core::time::Nanos;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Where it is.
pub const PATH: &str = "/dev/tty0";

/// The terminal that loads switch to. Users' are the first ones; this is the last of which the
/// kernel tells whether it is in use.
pub const SPARE: u16 = 15;

/// The LED of caps lock, in [`Console::show`].
pub const CAPS_LOCK: u8 = 4;
/// The LEDs are again what the keyboard's own state says.
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
    /// A bit for each of the first that somebody has open.
    in_use: u16,
}

/// The console, opened.
#[derive(Debug)]
pub struct Console(File);

impl Console {
    /// Opens the one at `path`, which does not become our terminal.
    pub fn open(path: &Path) -> io::Result<Console> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = File::options();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK);
        options.open(path).map(Console)
    }

    /// The LEDs that are lit.
    pub fn leds(&self) -> io::Result<u8> {
        let mut leds = 0;
        self.ask(KDGETLED, &mut leds).map(|()| leds)
    }

    /// Has the keyboard light these LEDs, whatever its own state is.
    pub fn show(&self, leds: u8) -> io::Result<()> {
        self.tell(KDSETLED, leds.into())
    }

    /// The number of the terminal that is to be seen.
    pub fn active(&self) -> io::Result<u16> {
        self.state().map(|state| state.active)
    }

    /// Whether somebody has the terminal [`SPARE`] open, or looks at it.
    pub fn spare_is_taken(&self) -> io::Result<bool> {
        let state = self.state()?;
        Ok(state.active == SPARE || state.in_use & (1 << SPARE) != 0)
    }

    fn state(&self) -> io::Result<State> {
        let mut state = State::default();
        self.ask(VT_GETSTATE, &mut state).map(|()| state)
    }

    /// Whether a program draws pictures on the terminal that is to be seen.
    pub fn is_graphical(&self) -> io::Result<bool> {
        let mut mode: libc::c_int = KD_TEXT;
        self.ask(KDGETMODE, &mut mode).map(|()| mode != KD_TEXT)
    }

    /// Switches to a terminal and waits until it is to be seen: `Interrupted` by a signal.
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
        // SAFETY: each call is made with the type that it writes to.
        crate::checked(unsafe { libc::ioctl(self.0.as_raw_fd(), call, answer) }).map(drop)
    }
}

/// What of the console runs change, and give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The LEDs that are lit.
    Leds,
    /// The terminal that is to be seen.
    Active,
}

impl Part {
    /// How it stands.
    pub(crate) fn read(self, path: &Path) -> Option<String> {
        let console = Console::open(path).ok()?;
        let number = match self {
            Part::Leds => console.leds().ok()?.into(),
            Part::Active => console.active().ok()?,
        };
        Some(number.to_string())
    }

    /// Has it stand so again.
    pub(crate) fn put(self, path: &Path, value: &str) -> io::Result<()> {
        let number: u16 = value.parse().map_err(io::Error::other)?;
        let console = Console::open(path)?;
        match self {
            Part::Leds => put_leds(&console, u8::try_from(number).map_err(io::Error::other)?),
            Part::Active => {
                console.tell(VT_ACTIVATE, number)?;
                wait_until(|| Ok(console.active()? == number))?;
                // This descriptor is that of the terminal seen until now, and keeps it in use.
                drop(console);
                free_spare(&Console::open(path)?);
                Ok(())
            }
        }
    }
}

/// Frees the terminal that loads switched to, when the kernel has noticed that it is closed. Where
/// somebody else has it open, it stays.
fn free_spare(console: &Console) {
    if wait_until(|| Ok(!console.spare_is_taken()?)).is_ok() {
        // One that was never made counts as busy.
        let _ = console.tell(VT_DISALLOCATE, SPARE);
    }
}

/// LEDs follow the keyboard's state, unless they had been told otherwise before us.
fn put_leds(console: &Console, leds: u8) -> io::Result<()> {
    console.show(FOLLOW)?;
    let shown = || Ok(console.leds()? == leds);
    wait_until(shown).or_else(|_| {
        console.show(leds)?;
        wait_until(shown)
    })
}

/// What the console is told it does a little later.
fn wait_until(so: impl Fn() -> io::Result<bool>) -> io::Result<()> {
    const PATIENCE: Nanos = Nanos::from_millis(500);
    let deadline = crate::clock::now() + PATIENCE;
    while !so()? {
        if crate::clock::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        crate::clock::sleep_for(Nanos::from_millis(1));
    }
    Ok(())
}
