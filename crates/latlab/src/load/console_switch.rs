//! The display: the console switches from one virtual terminal to another and back.

use super::{Bench, Load, Place, console};
use crate::failure::{Failure, Result};
use crate::needs::{Device, Needs};
use crate::registry::About;
use latlab_sys::console::SPARE;
use latlab_sys::root::Root;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};

/// Switches between the virtual terminal that is to be seen and one full of text, without a pause.
///
/// The console-switch load of Abeni et al. 2002 (section 5.2, table 1): the driver of the console
/// draws a whole screen under its lock (`VT_ACTIVATE`). Needs root, and a console that shows text on
/// a display; a guest of the laboratory gets a VGA card for it. The terminal switched to is /dev/tty15. At the end, and after a
/// crash at the next start of latlab, the console is as before. Its work is counted in switches.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct ConsoleSwitch {
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Load for ConsoleSwitch {
    const ABOUT: About =
        About { name: "console-switch", summary: "switch between virtual terminals" };
    const UNIT: &'static str = "switches";
    const ONE_WORKER: bool = true;
    const CHANGES: &'static [&'static str] = &["active_console"];

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        let (modules, devices) = ([DRIVER].into(), [Device::Display].into());
        Needs { modules, devices, ..Needs::default() }
    }

    fn check(&self, _: u64) -> Result<()> {
        let console = console::check(Self::ABOUT.name)?;
        let refused = |why: &str| Err(Failure::Unsupported(format!("console-switch: {why}")));
        if console.is_graphical().unwrap_or(false) {
            return refused(
                "a graphical session has the console: end it, or switch to a text console",
            );
        }
        if console.spare_is_taken().unwrap_or(true) {
            return refused("somebody uses its terminal (/dev/tty15): end what has that open");
        }
        if !something_draws(&Root::default()) {
            return refused(
                "nothing draws this machine's console: take one with a display, or go to the \
                 laboratory, whose guests get one where their kernel has a driver for it \
                 (--on lab:PROFILE)",
            );
        }
        Ok(())
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let (near, far) = (console::seen()?, SPARE);
        let console = console::terminal(near)?;
        let switched = |to| match console.switch_to(to) {
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
            done => done,
        };
        switched(far)?;
        // A few more lines than any screen has.
        let text = "the quick brown fox jumps over the lazy dog ".repeat(400);
        File::options().write(true).open(format!("/dev/tty{far}"))?.write_all(text.as_bytes())?;
        bench.ready();
        while bench.running() {
            for to in [near, far] {
                switched(to)?;
                bench.done(1);
            }
        }
        Ok(())
    }
}

/// Whether a driver draws consoles; the dummy one only remembers which is to be seen.
fn something_draws(root: &Root) -> bool {
    root.numbered("sys/class/vtconsole", "vtcon").iter().any(|(_, driver)| {
        let name = root.text(format!("sys/class/vtconsole/{driver}/name"));
        name.is_some_and(|name| !name.contains("dummy device"))
    })
}

/// The driver of QEMU's VGA card; with it the console is a picture (`drivers/gpu/drm/tiny/bochs.c`).
const DRIVER: &str = "bochs";
