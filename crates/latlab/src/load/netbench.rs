//! Requests and replies over TCP: clients and their servers, on this machine.

use super::{Bench, Load, Place};
use crate::registry::About;
use crate::traffic::{self, Client};
use std::io;

/// Clients that ask a server process each for files over TCP, on the loopback.
///
/// tbench (A. Tridgell; dbench), which Seo et al. 2009 run beside their latency probe (figure 5,
/// and 6 with a matrix multiplication and a download). What is asked for is the mix of the probe
/// netbench. It goes on until it is stopped. Its work is counted in requests that were answered.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Netbench {
    /// Clients, and as many servers
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Load for Netbench {
    const ABOUT: About =
        About { name: "netbench", summary: "clients that ask servers for files over TCP" };
    const UNIT: &'static str = "requests";
    const ONE_WORKER: bool = true;

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let life = |_, client| ask(bench, client);
        let children = traffic::start(bench.single(), self.clients as usize, life)?;
        bench.leave_to(children)
    }
}

fn ask(bench: &Bench, mut client: Client) -> io::Result<()> {
    /// Counted in batches: one shared counter must not become what the load is made of.
    const BATCH: usize = 50;
    let mix = traffic::mix();
    loop {
        for batch in mix.chunks(BATCH) {
            batch.iter().try_for_each(|exchange| client.exchange(*exchange))?;
            bench.done(batch.len() as u64);
        }
    }
}
