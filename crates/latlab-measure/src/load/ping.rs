//! Network load: a flood of ICMP echo requests.

use super::{Load, LoadContext, Place, network};
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::icmp::Pinger;
use latlab_sys::namespace;
use std::io;
use std::net::Ipv4Addr;

/// Sends an ICMP echo request as soon as the last reply has come, as ping -f does, one worker on
/// each CPU.
///
/// The ping load of Heursch and Rzehak 2001 (Rapid Reaction Linux, table 2), who sent requests to
/// another host. Here each worker sends them to itself, over the loopback interface of a network
/// namespace: all of the network code runs, without interrupts of a network card, and nothing is
/// visible outside. Needs root. Counts echoes.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Ping {
    /// Data in each echo request
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

impl Describe for Ping {
    const ABOUT: About = About { name: "ping", summary: "a flood of ICMP echoes over loopback" };
}

impl Load for Ping {
    fn unit(&self) -> &'static str {
        "echoes"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, _: u64) -> Result<()> {
        network::check(Self::ABOUT.name)
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        const PATIENCE: Nanos = Nanos::from_millis(10);
        namespace::unshare_network()?;
        let data = usize::try_from(self.size.0).map_err(io::Error::other)?;
        let mut pinger = Pinger::new(Ipv4Addr::LOCALHOST, data, PATIENCE)?;
        context.ready();
        while context.running() {
            context.done(u64::from(pinger.ask()?));
        }
        Ok(())
    }
}
