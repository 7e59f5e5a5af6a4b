//! Sockets: sending a message within this machine.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_core::size::Bytes;
use latlab_part::part::{About, Describe};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

/// Sends a message to a socket of this machine and receives it there.
///
/// In the window: one send, and the calls that receive all of it, mostly one. Over the loopback
/// interface (udp, tcp) a softirq delivers the message.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Socket {
    /// Kind of socket
    #[arg(long, default_value = "unix")]
    kind: Kind,
    /// Length of the message
    #[arg(long, default_value = "4KiB", value_parser = size)]
    size: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Unix,
    Udp,
    Tcp,
}

/// Reads a size that fits into the buffers of each kind, as nobody receives during the send.
fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if (1..=32768).contains(&size.0) { Ok(size) } else { Err(format!("{text} is not 1B to 32KiB")) }
}

impl Describe for Socket {
    const ABOUT: About = About { name: "socket", summary: "send a message over a local socket" };
}

impl Call for Socket {
    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        let message = vec![b'-'; usize::try_from(self.size.0).unwrap_or(1)];
        Ok(match self.kind {
            Kind::Unix => {
                let (near, far) = UnixStream::pair()?;
                Box::new(SocketStage { near, far, message })
            }
            Kind::Udp => {
                let (near, far) = (Udp::bound()?, Udp::bound()?);
                near.0.connect(far.0.local_addr()?)?;
                Box::new(SocketStage { near, far, message })
            }
            Kind::Tcp => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let near = TcpStream::connect(listener.local_addr()?)?;
                near.set_nodelay(true)?;
                let (far, _) = listener.accept()?;
                Box::new(SocketStage { near, far, message })
            }
        })
    }
}

struct SocketStage<S> {
    near: S,
    far: S,
    message: Vec<u8>,
}

impl<S: Read + Write> Stage for SocketStage<S> {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        window.enter()?;
        self.near.write_all(&self.message)?;
        self.far.read_exact(&mut self.message)?;
        window.leave();
        Ok(())
    }
}

/// A datagram socket with the interface of a stream.
struct Udp(UdpSocket);

impl Udp {
    fn bound() -> io::Result<Udp> {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map(Udp)
    }
}

impl Read for Udp {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }
}

impl Write for Udp {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        self.0.send(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
