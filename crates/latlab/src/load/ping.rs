//! The network: echoes are asked for as fast as they come back.

use super::{Bench, Load, Place, network};
use crate::failure::Result;
use crate::registry::About;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_sys::icmp::Pinger;
use latlab_sys::namespace;
use std::io;
use std::net::Ipv4Addr;

/// Asks for an ICMP echo as soon as the last one is back, as ping -f does, one worker on each CPU.
///
/// The ping load of Heursch and Rzehak 2001 (Rapid Reaction Linux, table 2), who asked another host.
/// Here each worker asks itself, over the loopback interface of a network of its own: all of the
/// network code runs, no interrupt of a card, and nothing of it is to be seen outside. Needs root.
/// Its work is counted in echoes.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Ping {
    /// Data in each echo
    #[arg(long, default_value = "56B", value_parser = length)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

fn length(text: &str) -> std::result::Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if size.0 <= 65_507 { Ok(size) } else { Err(format!("{text} is not 0B to 65507B")) }
}

impl Load for Ping {
    const ABOUT: About = About { name: "ping", summary: "a flood of ICMP echoes over loopback" };
    const UNIT: &'static str = "echoes";

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, _: u64) -> Result<()> {
        network::check(Self::ABOUT.name)
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        const PATIENCE: Nanos = Nanos::from_millis(10);
        namespace::own_network()?;
        let data = usize::try_from(self.size.0).map_err(io::Error::other)?;
        let mut pinger = Pinger::new(Ipv4Addr::LOCALHOST, data, PATIENCE)?;
        bench.ready();
        while bench.running() {
            bench.done(u64::from(pinger.ask()?));
        }
        Ok(())
    }
}
