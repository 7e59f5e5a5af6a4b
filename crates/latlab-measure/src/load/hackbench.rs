//! Messaging load: groups of processes in which every sender writes to every receiver.

use super::{Load, LoadContext, Place};
use crate::workload::hackbench::{self, Groups, Role, Transport};
use latlab_core::size::Bytes;
use latlab_part::part::{About, Describe};
use latlab_sys::process;
use latlab_sys::start_barrier::StartBarrier;
use std::fs::File;
use std::io;

/// Groups of processes in which each sender writes messages to each receiver of its group.
///
/// hackbench (R. Russell, P. Zijlstra, I. Molnar; rt-tests), with which Seo et al. 2009 load their
/// kernels: by default 25 senders and 25 receivers per group and messages of 100 bytes over Unix
/// sockets. It runs until it is stopped. Counts messages received.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Hackbench {
    /// Number of groups
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    groups: u32,
    /// Senders in each group, and as many receivers
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=500))]
    fan: u32,
    /// Length of a message
    #[arg(long, default_value = "100B", value_parser = hackbench::message_length)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Hackbench {
    const ABOUT: About =
        About { name: "hackbench", summary: "groups of processes that send each other messages" };
}

impl Load for Hackbench {
    fn unit(&self) -> &'static str {
        "messages"
    }

    fn one_worker(&self) -> bool {
        true
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let groups = Groups { number: self.groups, fan: self.fan, over: Transport::Sockets };
        // Without it, processes that run delay the start of the others.
        let barrier = StartBarrier::new()?;
        let children = groups.fork(context.single(), |role| {
            barrier.wait()?;
            let mut message = hackbench::message(self.size);
            match role {
                Role::Receiver(from) => receive(context, &from, &mut message),
                Role::Sender(to) => loop {
                    hackbench::send(&to, &message)?;
                },
            }
        })?;
        barrier.gather(children.len(), process::check_all_running)?;
        barrier.open()?;
        context.leave_to(children)
    }
}

fn receive(context: &LoadContext, from: &File, message: &mut [u8]) -> io::Result<()> {
    /// Counted in batches, so that the shared counter does not dominate the load.
    const BATCH: u64 = 64;
    loop {
        (0..BATCH).try_for_each(|_| hackbench::receive(from, message))?;
        context.done(BATCH);
    }
}
