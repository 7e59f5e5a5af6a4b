//! The network: a large file comes over TCP, again and again.

use super::{Bench, Load, Place, network, room};
use crate::failure::Result;
use crate::registry::About;
use latlab_core::size::Bytes;
use latlab_sys::namespace;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Downloads a file over TCP from a server of its own, again and again, one client on each CPU.
///
/// The I/O-bound load of Seo et al. 2009 (section 4.2), a client that downloads files of 700 MB
/// continually. Each worker has a network of its own, with only the loopback interface, and a child
/// as the server: nothing of it is to be seen outside. The server sends out of memory, and what
/// comes is thrown away. Needs root. Its work is counted in bytes received.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Download {
    /// Size of the file; each comes over a connection of its own
    #[arg(long, default_value = "700MB", value_parser = room::size)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

/// What is sent and read at a time.
const CHUNK: usize = 64 * 1024;

impl Load for Download {
    const ABOUT: About =
        About { name: "download", summary: "files of 700 MB over TCP, from a server of its own" };
    const UNIT: &'static str = "bytes";

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, _: u64) -> Result<()> {
        network::check(Self::ABOUT.name)
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        namespace::own_network()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let _server = bench.single().fork(|| self.serve(&listener))?;
        drop(listener);
        let mut buffer = vec![0; CHUNK];
        bench.ready();
        while bench.running() {
            receive(bench, TcpStream::connect(address)?, &mut buffer)?;
        }
        Ok(())
    }
}

impl Download {
    /// Sends the file to whoever connects, one after another. Who hangs up has had enough.
    fn serve(&self, listener: &TcpListener) {
        let chunk = vec![b'-'; CHUNK];
        for mut client in listener.incoming().flatten() {
            let mut left = self.size.0;
            while left > 0 {
                let length = chunk.len().min(usize::try_from(left).unwrap_or(CHUNK));
                if client.write_all(&chunk[..length]).is_err() {
                    break;
                }
                left -= length as u64;
            }
        }
    }
}

/// Reads until the file is over or the run is.
fn receive(bench: &Bench, mut from: TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    while bench.running() {
        match from.read(buffer) {
            Ok(0) => break,
            Ok(length) => bench.done(length as u64),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
