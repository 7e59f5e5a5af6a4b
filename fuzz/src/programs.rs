//! What other programs, machines and the kernel write: messages, packages, images, journals.

use crate::program;

/// Calls `parse` with the input where it is a text.
fn text(bytes: &[u8], parse: impl Fn(&str)) {
    if let Ok(text) = str::from_utf8(bytes) {
        parse(text);
    }
}

/// A kept cell of the laboratory.
pub fn cell(bytes: &[u8]) {
    text(bytes, program::cell);
}

/// The report of a check.
pub fn check(bytes: &[u8]) {
    text(bytes, program::check_report);
}

/// The files of a guest.
pub fn cpio(bytes: &[u8]) {
    program::cpio(bytes);
}

/// Answers of QEMU's debugger port.
pub fn debugger(bytes: &[u8]) {
    program::debugger(bytes);
}

/// A plan for another machine.
pub fn plan(bytes: &[u8]) {
    text(bytes, program::plan);
}

/// The status of the daemon.
pub fn status(bytes: &[u8]) {
    text(bytes, program::status);
}

/// A log of the daemon, which is decided again.
pub fn adapt_log(bytes: &[u8]) {
    program::adapt_log(bytes);
}

/// A program or library that goes into a guest.
pub fn elf(bytes: &[u8]) {
    program::elf(bytes);
}

/// Events of a check, one after another: a byte chooses the length of each.
pub fn events(bytes: &[u8]) {
    let mut rest = bytes;
    let events = std::iter::from_fn(|| {
        let (first, after) = rest.split_first()?;
        let length = if first & 1 == 0 { 120 } else { 192 };
        let event;
        (event, rest) = after.split_at(after.len().min(length));
        Some(event)
    });
    program::check_events(events.filter_map(latlab_bpf::fuzz::observed));
}

/// A program that is checked.
pub fn image(bytes: &[u8]) {
    program::image(bytes);
}

/// A request of metrics.
pub fn http(bytes: &[u8]) {
    program::http(bytes);
}

/// A journal of the guard.
pub fn journal(bytes: &[u8]) {
    latlab_sys::fuzz::journal(bytes);
}

/// The description of a kernel in the cache.
pub fn kernel_facts(bytes: &[u8]) {
    text(bytes, program::kernel_facts);
}

/// A kernel's file.
pub fn kernel_image(bytes: &[u8]) {
    program::kernel_image(bytes);
}

/// A kernel module, packed in one of three ways or not; the first byte chooses.
pub fn kernel_module(bytes: &[u8]) {
    if let Some((first, bytes)) = bytes.split_first() {
        program::kernel_module(["ko", "gz", "xz", "zst"][usize::from(first % 4)], bytes);
    }
}

/// The text of a knob's file.
pub fn knob(bytes: &[u8]) {
    text(bytes, latlab_sys::fuzz::knob);
}

/// A message from a guest or a host.
pub fn message(bytes: &[u8]) {
    text(bytes, program::message);
}

/// The description of a package.
pub fn package(bytes: &[u8]) {
    text(bytes, program::package);
}

/// A probe, load or call with its parameters.
pub fn part(bytes: &[u8]) {
    text(bytes, program::part);
}

/// A profile of the laboratory.
pub fn profile(bytes: &[u8]) {
    text(bytes, program::profile);
}

/// The output of Slurm's commands.
pub fn slurm(bytes: &[u8]) {
    text(bytes, program::slurm);
}

/// What the doctor of a host prints.
pub fn diagnosis(bytes: &[u8]) {
    program::diagnosis(bytes);
}

/// The name of a host, and what comes from it.
pub fn ssh(bytes: &[u8]) {
    text(bytes, program::ssh_host);
    program::ssh_lines(bytes);
}

/// Text that is shown on a terminal.
pub fn terminal(bytes: &[u8]) {
    text(bytes, program::terminal);
}

/// A window of the recorder, or the events of a CPU.
pub fn window(bytes: &[u8]) {
    latlab_bpf::fuzz::window_and_ring(bytes);
}
