//! Stacks as traces print them, and what they say about an interrupt.

/// What an interrupt interrupted, by the stack of an event in its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// User mode.
    User,
    /// The kernel, in this function of the stack.
    Kernel(usize),
}

/// The function of a line of a stack: ` => function`, ` => function (address)`, or perf's `address function+0x1
/// ([kernel.kallsyms])`. None if the line is none.
pub(crate) fn function(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("=>") {
        let rest = rest.trim();
        // An address follows, or precedes where the function has no name.
        return Some(rest.split_once(" (").map_or(rest, |(name, _)| name).trim());
    }
    let (address, rest) = line.split_once(' ')?;
    let is_address = address.len() >= 8 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (name, place) = rest.rsplit_once(" (")?;
    let is_kernel =
        place.starts_with("[kernel") || place.starts_with("[guest") || place.contains(".ko");
    let name = if is_kernel { name.trim() } else { "" };
    (is_address && place.ends_with(')')).then_some(name)
}

/// What an interrupt interrupted, by a stack from its handler on outwards; none if it has no entry of an interrupt.
/// Source: `arch/x86/entry/entry_64.S`, `arch/arm64/kernel/entry.S`.
pub(crate) fn interrupted(stack: &[String]) -> Option<Interrupted> {
    let is_entry = |name: &String| {
        ["asm_sysvec_", "asm_common_interrupt", "el1h_64_irq", "el1_irq", "el0t_64_irq", "el0_irq"]
            .iter()
            .any(|entry| name.starts_with(entry))
            && !name.ends_with("_handler")
    };
    let entry = stack.iter().position(is_entry)?;
    let is_user = stack[entry].starts_with("el0") || entry + 1 == stack.len();
    Some(if is_user { Interrupted::User } else { Interrupted::Kernel(entry + 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_each_form_of_line_are_found() {
        assert_eq!(function(" => try_to_wake_up"), Some("try_to_wake_up"));
        assert_eq!(function("=> __wake_up (ffffffff8109b2c1)"), Some("__wake_up"));
        assert_eq!(
            function("=> igb_set_rx_mode+0x1/0x2 [igb]"),
            Some("igb_set_rx_mode+0x1/0x2 [igb]")
        );
        let perf = "\tffffffff8109b2c1 try_to_wake_up+0x21 ([kernel.kallsyms])";
        assert_eq!(function(perf), Some("try_to_wake_up+0x21"));
        assert_eq!(function("   7f0123456789 main+0x1 (/bin/x)"), Some(""), "of a program");
        assert_eq!(function("a-1 [000] 1.5: sched_switch: x (y)"), None);
        assert_eq!(function(""), None);
    }

    #[test]
    fn stack_shows_what_was_interrupted() {
        let of = |text: &str| {
            let stack: Vec<String> = text.split(' ').map(str::to_owned).collect();
            interrupted(&stack)
        };
        assert_eq!(of("f asm_sysvec_apic_timer_interrupt"), Some(Interrupted::User));
        assert_eq!(of("f asm_common_interrupt g h"), Some(Interrupted::Kernel(2)));
        assert_eq!(of("f el1h_64_irq_handler el1h_64_irq g"), Some(Interrupted::Kernel(3)));
        assert_eq!(of("f el0t_64_irq_handler el0t_64_irq"), Some(Interrupted::User));
        assert_eq!(of("f g do_syscall_64"), None);
    }
}
