//! Network load: a large file is downloaded over TCP repeatedly.

use super::{Load, LoadContext, Place, network, space};
use latlab_core::size::Bytes;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::namespace;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Downloads a file over TCP from its own server repeatedly, one client on each CPU.
///
/// The I/O-bound load of Seo et al. 2009 (section 4.2), a client that downloads files of 700 MB
/// continuously. Each worker has a network namespace with only the loopback interface, and a child
/// process as the server, so that nothing is visible outside. The server sends from memory, and the
/// client discards the data. Needs root. Counts bytes received.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Download {
    /// Size of the file; each download is a new connection
    #[arg(long, default_value = "700MB", value_parser = space::file_size)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

/// Bytes per call of send and receive.
const CHUNK: usize = 64 * 1024;

impl Describe for Download {
    const ABOUT: About =
        About { name: "download", summary: "download 700 MB files over TCP from a local server" };
}

impl Load for Download {
    fn unit(&self) -> &'static str {
        "bytes"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, _: u64) -> Result<()> {
        network::check(Self::ABOUT.name)
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        namespace::unshare_network()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let _server = context.single().fork(|| self.serve(&listener))?;
        drop(listener);
        let mut buffer = vec![0; CHUNK];
        context.ready();
        while context.running() {
            receive(context, TcpStream::connect(address)?, &mut buffer)?;
        }
        Ok(())
    }
}

impl Download {
    /// Sends the file to one client after another. A client may hang up before the end.
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

/// Reads until the end of the file or of the run.
fn receive(context: &LoadContext, mut from: TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    while context.running() {
        match from.read(buffer) {
            Ok(0) => break,
            Ok(length) => context.done(length as u64),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
