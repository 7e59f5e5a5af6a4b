//! Request load: clients and their servers exchange messages over TCP on this machine.

use super::{Load, LoadContext, Place};
use crate::workload::netbench::{self, Client};
use latlab_part::part::{About, Describe};
use std::io;

/// Clients that request files over TCP, each from its own server process, on the loopback
/// interface.
///
/// tbench (A. Tridgell; dbench), which Seo et al. 2009 run together with their latency probe
/// (figure 5, and 6 with a matrix multiplication and a download). The mix of requests is that of
/// the probe netbench. It runs until it is stopped. Counts requests that were answered.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Netbench {
    /// Number of clients, and of servers
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Netbench {
    const ABOUT: About =
        About { name: "netbench", summary: "clients that request files from servers over TCP" };
}

impl Load for Netbench {
    fn unit(&self) -> &'static str {
        "requests"
    }

    fn one_worker(&self) -> bool {
        true
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let run = |_, client| request(context, client);
        let children = netbench::start(context.single(), self.clients as usize, run)?;
        context.leave_to(children)
    }
}

fn request(context: &LoadContext, mut client: Client) -> io::Result<()> {
    /// Counted in batches, so that the shared counter does not dominate the load.
    const BATCH: usize = 50;
    let mix = netbench::mix();
    loop {
        for batch in mix.chunks(BATCH) {
            batch.iter().try_for_each(|exchange| client.exchange(*exchange))?;
            context.done(batch.len() as u64);
        }
    }
}
