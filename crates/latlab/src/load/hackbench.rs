//! Messages between many processes: groups in which every sender writes to every receiver.

use super::{Bench, Load, Place};
use crate::registry::About;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::process::{self, Forked};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// Groups of processes in which each sender writes messages to each receiver of its group.
///
/// hackbench (R. Russell, P. Zijlstra, I. Molnar; rt-tests), as Seo et al. 2009 load their kernels
/// with: by default 25 senders and 25 receivers a group and messages of 100 bytes over Unix
/// sockets. It goes on until it is stopped. Its work is counted in messages received.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Hackbench {
    /// Groups
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    groups: u32,
    /// Senders in each group, and as many receivers
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=500))]
    fan: u32,
    /// Length of a message
    #[arg(long, default_value = "100B", value_parser = length)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

fn length(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if (1..=65536).contains(&size.0) { Ok(size) } else { Err(format!("{text} is not 1B to 64KiB")) }
}

impl Load for Hackbench {
    const ABOUT: About =
        About { name: "hackbench", summary: "groups of processes that send each other messages" };
    const UNIT: &'static str = "messages";
    const ONE_WORKER: bool = true;

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let mut children = Vec::new();
        for _ in 0..self.groups {
            self.start_group(bench, &mut children)?;
        }
        bench.ready();
        while bench.running() {
            clock::sleep_for(Nanos::from_millis(100));
        }
        process::end_all(children);
        Ok(())
    }
}

impl Hackbench {
    /// Receivers first, so that each sender finds all of its sockets made.
    fn start_group(&self, bench: &Bench, children: &mut Vec<Forked>) -> io::Result<()> {
        let mut to_receivers = Vec::new();
        for _ in 0..self.fan {
            let (near, far) = UnixStream::pair()?;
            children.push(bench.single().fork(|| self.receive(bench, far))?);
            to_receivers.push(near);
        }
        for _ in 0..self.fan {
            children.push(bench.single().fork(|| self.send(&to_receivers))?);
        }
        Ok(())
    }

    fn message(&self) -> Vec<u8> {
        vec![b'-'; usize::try_from(self.size.0).unwrap_or(1)]
    }

    /// Reads until nobody is left who writes.
    fn receive(&self, bench: &Bench, mut from: UnixStream) {
        /// Counted in batches: one shared counter must not become what the load is made of.
        const BATCH: u64 = 64;
        let mut message = self.message();
        let mut received = 0;
        while from.read_exact(&mut message).is_ok() {
            received += 1;
            if received == BATCH {
                bench.done(received);
                received = 0;
            }
        }
    }

    fn send(&self, to: &[UnixStream]) {
        let message = self.message();
        while to.iter().all(|mut receiver| receiver.write_all(&message).is_ok()) {}
    }
}
