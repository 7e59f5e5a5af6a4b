//! Keyboard load: the caps lock LED is switched on and off.

use super::{Load, LoadContext, Place, console};
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};
use latlab_sys::console::CAPS_LOCK;
use latlab_sys::root::Root;
use std::io;

/// Switches the caps lock LED of the console's keyboard on and off without pause (`KDSETLED`).
///
/// The caps-lock load of Abeni et al. 2002 (section 5.2, table 1), where the keyboard driver waited
/// for the LED with interrupts disabled. Today the keyboard controller (i8042) answers by
/// interrupts, and gets at most 20 changes a second. Needs root and a keyboard with such a LED;
/// guests of the laboratory have one. The LEDs are restored at the end; after a crash, at the next
/// start of latlab. Counts switches.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct CapsLock {
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for CapsLock {
    const ABOUT: About =
        About { name: "caps-lock", summary: "switch the keyboard's caps lock LED" };
}

impl Load for CapsLock {
    fn unit(&self) -> &'static str {
        "switches"
    }

    fn one_worker(&self) -> bool {
        true
    }

    fn changes(&self) -> &'static [&'static str] {
        &["console_leds"]
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, _: u64) -> Result<()> {
        console::check(Self::ABOUT.name)?;
        let root = Root::default();
        let inputs = root.numbered("sys/class/input", "input");
        let lit = inputs.iter().any(|(_, name)| {
            let leds = root.text(format!("sys/class/input/{name}/capabilities/led"));
            leds.is_some_and(|leds| has_caps_lock(&leds))
        });
        if lit {
            return Ok(());
        }
        let why = "caps-lock: no keyboard with a caps lock LED is connected: connect one, or use a guest \
                   of the laboratory, which has one (--on lab:PROFILE)";
        Err(Failure::unsupported(why))
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let console = console::terminal(console::active()?)?;
        let mut leds = CAPS_LOCK;
        context.ready();
        while context.running() {
            console.show(leds)?;
            leds ^= CAPS_LOCK;
            context.done(1);
        }
        Ok(())
    }
}

/// Whether `LED_CAPSL` is set in the kernel's bit mask of LEDs: hexadecimal words, the lowest last.
fn has_caps_lock(leds: &str) -> bool {
    const LED_CAPSL: u64 = 1;
    let lowest = leds.split_whitespace().last();
    let bits = lowest.and_then(|word| u64::from_str_radix(word, 16).ok());
    bits.is_some_and(|bits| bits & (1 << LED_CAPSL) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn led_mask_with_caps_lock_bit_is_recognized() {
        for (leds, has) in
            [("7", true), ("1f", true), ("2", true), ("0", false), ("5", false), ("2 0", false)]
        {
            assert_eq!(has_caps_lock(leds), has, "{leds}");
        }
    }
}
