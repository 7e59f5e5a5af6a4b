//! Display load: switches between virtual terminals.

use super::{Load, LoadContext, Place, console};
use latlab_part::failure::{Failure, Result};
use latlab_part::part::needs::{Device, Needs};
use latlab_part::part::{About, Describe};
use latlab_sys::console::SPARE;
use latlab_sys::root::Root;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};

/// Switches between the active virtual terminal and one full of text, without pause.
///
/// The console-switch load of Abeni et al. 2002 (section 5.2, table 1): the console driver draws a
/// whole screen while it holds its lock (`VT_ACTIVATE`). Needs root, and a console that shows text
/// on a display; guests of the laboratory get a VGA card for it. It switches to /dev/tty15 and
/// back. The console is restored at the end; after a crash, at the next start of latlab. Counts
/// switches.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct ConsoleSwitch {
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for ConsoleSwitch {
    const ABOUT: About =
        About { name: "console-switch", summary: "switch between virtual terminals" };
}

impl Load for ConsoleSwitch {
    fn unit(&self) -> &'static str {
        "switches"
    }

    fn one_worker(&self) -> bool {
        true
    }

    fn changes(&self) -> &'static [&'static str] {
        &["active_console"]
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        let (modules, devices) = ([DRIVER].into(), [Device::Display].into());
        Needs { modules, devices, ..Needs::default() }
    }

    fn check(&self, _: u64) -> Result<()> {
        let console = console::check(Self::ABOUT.name)?;
        let refused = |why: &str| Err(Failure::unsupported(format!("console-switch: {why}")));
        match console.is_graphical() {
            Ok(false) => {}
            Ok(true) => {
                return refused(
                    "a graphical session uses the console: end it, or switch to a text console",
                );
            }
            Err(e) => return refused(&format!("the console's mode can't be read: {e}")),
        }
        if console.spare_is_taken().unwrap_or(true) {
            return refused("another program uses its terminal (/dev/tty15): end that program");
        }
        if !has_drawing_driver(&Root::default()) {
            return refused(
                "no driver draws this machine's console: use a machine with a display, or a guest of \
                 the laboratory, which has one if its kernel has a driver for it \
                 (--on lab:PROFILE)",
            );
        }
        Ok(())
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let (active, spare) = (console::active()?, SPARE);
        let console = console::terminal(active)?;
        let switched = |to| match console.switch_to(to) {
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
            done => done,
        };
        switched(spare)?;
        // A few more lines than any screen has.
        let text = "the quick brown fox jumps over the lazy dog ".repeat(400);
        File::options().write(true).open(format!("/dev/tty{spare}"))?.write_all(text.as_bytes())?;
        context.ready();
        while context.running() {
            for to in [active, spare] {
                switched(to)?;
                context.done(1);
            }
        }
        Ok(())
    }
}

/// Whether a driver draws consoles. The dummy driver does not.
fn has_drawing_driver(root: &Root) -> bool {
    root.numbered("sys/class/vtconsole", "vtcon").iter().any(|(_, driver)| {
        let name = root.text(format!("sys/class/vtconsole/{driver}/name"));
        name.is_some_and(|name| !name.contains("dummy device"))
    })
}

/// The driver of QEMU's VGA card, which provides a framebuffer console
/// (`drivers/gpu/drm/tiny/bochs.c`).
const DRIVER: &str = "bochs";
