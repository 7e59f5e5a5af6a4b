//! The functions for C; `include/latlab-period.h` declares and describes them.

use crate::interrupts;
use crate::mark;
use crate::period::Period;
use crate::settings::{OnOverrun, Policy, Refused, Settings};
use crate::statistics::Summary;
use core::ffi::{CStr, c_char, c_int};
use core::ptr::{null, null_mut};
use core::time::Duration;

/// `struct latlab_period_settings`.
#[repr(C)]
#[derive(Debug)]
struct CSettings {
    period_ns: u64,
    name: *const c_char,
    policy: c_int,
    priority: c_int,
    runtime_ns: u64,
    on_overrun: c_int,
    leave_memory_unlocked: c_int,
    stack_bytes: u64,
    hold_cpu_dma_latency: c_int,
    cpu_dma_latency_us: c_int,
    spin_at_most_ns: u64,
    failed: *const c_char,
}

/// Starts a loop of the calling thread. Null where it can't: `settings->failed` and `errno` say why.
///
/// # Safety
///
/// `settings` must point to settings whose name is null or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn latlab_period_start(settings: *mut CSettings) -> *mut Period {
    // SAFETY: the caller gives valid settings, which nothing else uses meanwhile.
    let settings = unsafe { &mut *settings };
    match start(settings) {
        Ok(period) => period,
        Err(error) => {
            settings.failed = told(&error);
            null_mut()
        }
    }
}

/// Ends a cycle and waits for the next. Returns the number of skipped periods, or -1 where the loop
/// has stopped.
///
/// # Safety
///
/// `period` must come from `latlab_period_start` in this thread, and not have been ended.
#[unsafe(no_mangle)]
unsafe extern "C" fn latlab_period_wait(period: *mut Period) -> i64 {
    // SAFETY: the caller gives a loop of its own.
    let period = unsafe { &mut *period };
    period.wait().map_or(-1, u64::cast_signed)
}

/// Writes the loop so far to `summary`.
///
/// # Safety
///
/// `period` must be as for `latlab_period_wait`, and `summary` valid to write to.
#[unsafe(no_mangle)]
unsafe extern "C" fn latlab_period_summary(period: *const Period, summary: *mut Summary) {
    // SAFETY: the caller gives a loop of its own.
    let period = unsafe { &*period };
    // SAFETY: the caller gives a valid place.
    unsafe { summary.write(period.summary()) };
}

/// Ends a loop.
///
/// # Safety
///
/// `period` must be null, or as for `latlab_period_wait`; it must not be used after this.
#[unsafe(no_mangle)]
unsafe extern "C" fn latlab_period_end(period: *mut Period) {
    if period.is_null() {
        return;
    }
    // SAFETY: the loop is valid, and used no more.
    unsafe { period.drop_in_place() };
    // SAFETY: `start` has mapped exactly this, and nothing refers to it.
    unsafe { libc::munmap(period.cast(), size_of::<Period>()) };
}

/// The calling thread waits for interrupts of these device groups. Returns null, or what was refused;
/// `errno` says why.
///
/// # Safety
///
/// `groups` must point to a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn latlab_prioritize(groups: *const c_char) -> *const c_char {
    // SAFETY: the caller gives a C string.
    let groups = unsafe { CStr::from_ptr(groups) }.to_str();
    let wrong = Refused { what: c"the names of the groups are not UTF-8", number: libc::EINVAL };
    match groups.map_err(|_| wrong).and_then(interrupts::prioritize) {
        Ok(()) => null(),
        Err(error) => told(&error),
    }
}

/// Sets `errno`, and returns what was refused.
fn told(error: &Refused) -> *const c_char {
    // SAFETY: __errno_location takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the C library gives each thread a valid place for its error number.
    unsafe { place.write(error.number) };
    error.what.as_ptr()
}

/// A part of a cycle begins, for languages that have no header.
///
/// # Safety
///
/// `name` must point to a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn latlab_mark_begin(name: *const c_char, id: i64) {
    // SAFETY: the caller gives a C string.
    mark::begin(unsafe { CStr::from_ptr(name) }, id);
}

/// The part ends.
///
/// # Safety
///
/// As for `latlab_mark_begin`.
#[unsafe(no_mangle)]
unsafe extern "C" fn latlab_mark_end(name: *const c_char) {
    // SAFETY: the caller gives a C string.
    mark::end(unsafe { CStr::from_ptr(name) });
}

/// Starts a loop, and puts it into a mapping of its own: there is no allocator here.
fn start(settings: &CSettings) -> Result<*mut Period, Refused> {
    let settings = understood(settings)?;
    let (access, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let (size, nowhere) = (size_of::<Period>(), null_mut());
    // SAFETY: a new mapping at a place that the kernel chooses replaces none.
    let place = unsafe { libc::mmap(nowhere, size, access, flags | libc::MAP_POPULATE, -1, 0) };
    if place == libc::MAP_FAILED {
        return Err(Refused::last(c"the kernel refuses a page of memory"));
    }
    // Last, as it has effects that last.
    let period = Period::start(&settings).inspect_err(|_| {
        // SAFETY: exactly the mapping above, which nothing uses.
        unsafe { libc::munmap(place, size) };
    })?;
    let place = place.cast::<Period>();
    // SAFETY: the mapping is aligned to a page, writable and large enough.
    unsafe { place.write(period) };
    Ok(place)
}

/// The settings as Rust has them.
fn understood(settings: &CSettings) -> Result<Settings<'_>, Refused> {
    let wrong = |what| Refused { what, number: libc::EINVAL };
    let priority = u32::try_from(settings.priority).unwrap_or(0);
    let policy = match settings.policy {
        0 => Policy::Keep,
        1 => Policy::Fifo(priority),
        2 => Policy::RoundRobin(priority),
        3 => Policy::Deadline(Duration::from_nanos(settings.runtime_ns)),
        _ => return Err(wrong(c"the policy is none of latlab-period.h")),
    };
    let on_overrun = match settings.on_overrun {
        0 => OnOverrun::Skip,
        1 => OnOverrun::CatchUp,
        2 => OnOverrun::Stop,
        _ => return Err(wrong(c"what follows an overrun is none of latlab-period.h")),
    };
    let usual = Settings::every(Duration::from_nanos(settings.period_ns));
    let stack = usize::try_from(settings.stack_bytes).unwrap_or(usize::MAX);
    let cpu_dma_latency = match u64::try_from(settings.cpu_dma_latency_us) {
        _ if settings.hold_cpu_dma_latency == 0 => None,
        Ok(micros) => Some(Duration::from_micros(micros)),
        Err(_) => return Err(wrong(c"the latency of idle states is negative")),
    };
    Ok(Settings {
        name: name(settings)?,
        policy,
        on_overrun,
        lock_memory: settings.leave_memory_unlocked == 0,
        stack: if stack == 0 { usual.stack } else { stack },
        cpu_dma_latency,
        spin_at_most: Duration::from_nanos(settings.spin_at_most_ns),
        ..usual
    })
}

fn name(settings: &CSettings) -> Result<Option<&str>, Refused> {
    if settings.name.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller of `latlab_period_start` gives a C string, which lives as long as that runs.
    let name = unsafe { CStr::from_ptr(settings.name) };
    let wrong = Refused { what: c"the name is not UTF-8", number: libc::EINVAL };
    name.to_str().map(Some).map_err(|_| wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_latency_of_idle_states_is_refused_where_it_is_used() {
        let mut settings = CSettings {
            period_ns: 1_000_000,
            name: null(),
            policy: 0,
            priority: 0,
            runtime_ns: 0,
            on_overrun: 0,
            leave_memory_unlocked: 1,
            stack_bytes: 0,
            hold_cpu_dma_latency: 1,
            cpu_dma_latency_us: -1,
            spin_at_most_ns: 0,
            failed: null(),
        };
        assert_eq!(understood(&settings).unwrap_err().errno(), libc::EINVAL);
        settings.hold_cpu_dma_latency = 0;
        assert_eq!(understood(&settings).unwrap().cpu_dma_latency, None);
    }
}
