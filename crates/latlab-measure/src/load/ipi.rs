//! IPI load: threads change memory that all of them share.

use super::{Load, LoadContext, Place};
use latlab_core::cpulist::CpuList;
use latlab_core::size::Bytes;
use latlab_part::part::{About, Describe};
use latlab_sys::mapping::Mapping;
use latlab_sys::shared::SharedPage;
use latlab_sys::{cpu, membarrier, signal};
use std::io;
use std::thread::Builder;

/// Threads of one process on all CPUs unmap memory and request barriers (membarrier), so that each
/// interrupts all others.
///
/// The work of garbage collectors and large multi-threaded programs: after munmap every CPU that
/// runs the process has to flush a page from its TLB (TLB shoot-down), and a barrier waits for all
/// of them. Needs two CPUs: the laboratory's profiles have one, so write a profile with cpus = 2.
/// Counts broadcasts.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Ipi {
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Ipi {
    const ABOUT: About =
        About { name: "ipi", summary: "interrupts between CPUs: TLB shootdowns, membarrier" };
}

impl Load for Ipi {
    fn unit(&self) -> &'static str {
        "broadcasts"
    }

    fn one_worker(&self) -> bool {
        true
    }

    fn least_cpus(&self) -> usize {
        2
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        // Kernels before 4.16 have no barriers by IPI, only TLB shoot-downs.
        let barriers = membarrier::register().is_ok();
        let cpus = cpu::allowed()?;
        context.ready();
        let progress = &context.progress;
        std::thread::scope(|scope| {
            let on = |cpu| {
                move || {
                    // If one thread fails, all end, so that the error is reported.
                    broadcast(progress, cpu, barriers).inspect_err(|_| signal::request_end())
                }
            };
            let start = |cpu| Builder::new().spawn_scoped(scope, on(cpu));
            let threads: io::Result<Vec<_>> = cpus.iter().map(start).collect();
            let threads = threads.inspect_err(|_| signal::request_end())?;
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
            })
        })
    }
}

/// Interrupts all other threads' CPUs from this one.
fn broadcast(progress: &SharedPage, cpu: u32, barriers: bool) -> io::Result<()> {
    const PAGE: Bytes = Bytes(4096);
    cpu::pin(&CpuList::from_iter([cpu]))?;
    while !signal::termination_requested() {
        Mapping::new(PAGE)?.touch();
        if barriers {
            membarrier::everywhere()?;
        }
        progress.add(1 + u64::from(barriers));
    }
    Ok(())
}
