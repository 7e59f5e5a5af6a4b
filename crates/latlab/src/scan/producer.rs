//! The Producer: the task of high priority that the interrupt wakes.

use crate::failure::{Result, failed};
use crate::permission;
use crate::window::Times;
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::sched::{self, Policy};
use latlab_sys::{clock, cpu, memory};
use std::fs::File;
use std::io::Read as _;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Starts it on `cpu`, where it hears through `alarm` when it is to be woken. It ends when nobody
/// is left who could write there.
pub(super) fn start(on: u32, times: Times, alarm: File) -> Result<JoinHandle<()>> {
    let (say, hear) = mpsc::channel();
    let life = move || {
        let ready = set_up(on);
        let failed = ready.is_err();
        let heard = say.send(ready);
        drop(say);
        if !failed && heard.is_ok() {
            produce(&times, alarm);
        }
    };
    let thread = std::thread::Builder::new().name("producer".to_owned()).stack_size(512 * 1024);
    let thread = thread.spawn(life).map_err(|e| failed("a thread could not be started", e))?;
    hear.recv().map_err(|e| failed("the task of high priority", e))??;
    Ok(thread)
}

fn set_up(on: u32) -> Result<()> {
    memory::touch_stack();
    cpu::pin(&CpuList::from_iter([on])).map_err(|e| failed(&format!("CPU {on}"), e))?;
    sched::set_policy(Policy::Fifo(super::PRODUCER)).map_err(|e| permission::refused("fifo", &e))
}

fn produce(times: &Times, mut alarm: File) {
    let mut due = [0; 8];
    while alarm.read_exact(&mut due).is_ok() {
        if clock::sleep_until(Nanos(u64::from_ne_bytes(due))) {
            times.woken(clock::now(), None);
        }
    }
}
