//! TCP requests and replies of clients and a file server, as in tbench.

use latlab_core::random::Random;
use latlab_sys::process::{Forked, SingleThread};
use latlab_sys::socket;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// A request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the request, including its header.
    pub request: u32,
    /// Bytes of the reply, including its header.
    pub reply: u32,
    /// Bytes of file data in the request or the reply.
    pub payload: u32,
}

/// The exchanges of a client, with their number in a thousand. The rates of operations and the mean
/// sizes of their data are from dbench's client load file, the message lengths from tbench.
const MIX: &[(u32, Exchange)] = &[
    // Opening or creating a file, querying a path, closing, removing, renaming.
    (173, plain(153, 87)),
    (157, plain(135, 71)),
    (127, plain(47, 39)),
    (35, plain(123, 39)),
    (7, plain(210, 39)),
    // Listing a directory without and with a match.
    (31, plain(114, 39)),
    (30, plain(114, 1029)),
    // Querying a file or the file system, setting file attributes, flushing, locking.
    (56, plain(59, 71)),
    (14, plain(71, 47)),
    (12, plain(41, 39)),
    (1, plain(51, 39)),
    (6, read(16)),
    (13, read(400)),
    (18, read(2_048)),
    (182, read(4_096)),
    (11, read(8_192)),
    (4, read(16_384)),
    (37, read(60_788)),
    (17, write(4)),
    (2, write(400)),
    (4, write(2_048)),
    (22, write(4_096)),
    (7, write(10_761)),
    (3, write(23_490)),
    (31, write(64_221)),
];

const fn plain(request: u32, reply: u32) -> Exchange {
    Exchange { request, reply, payload: 0 }
}

const fn read(payload: u32) -> Exchange {
    Exchange { request: 59, reply: 59 + payload, payload }
}

const fn write(payload: u32) -> Exchange {
    Exchange { request: 59 + payload, reply: 55, payload }
}

/// Returns a thousand exchanges in a pseudo-random order that is always the same.
pub fn mix() -> Vec<Exchange> {
    let all = MIX.iter().flat_map(|(times, one)| std::iter::repeat_n(*one, *times as usize));
    let mut all: Vec<(u64, Exchange)> = Random::new(0).zip(all).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, exchange)| exchange).collect()
}

/// Length of a header: the number of bytes that follow it, big-endian.
const HEADER: usize = 4;
/// Length of both headers of a request. The second one is the number of bytes of the reply after
/// its header.
const REQUEST_HEADERS: usize = 2 * HEADER;
/// Size of a buffer that holds the longest message.
const BUFFER: usize = 70_000;

/// A client's end of a connection.
pub struct Client {
    connection: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Returns a client on an open connection, after one exchange with the server.
    fn new(connection: TcpStream) -> io::Result<Client> {
        let connection = set_up(connection)?;
        let mut client = Client { connection, buffer: vec![0; BUFFER] };
        client.exchange(plain(8, 8))?;
        Ok(client)
    }

    /// Sends a request and waits for the reply.
    #[inline]
    pub fn exchange(&mut self, exchange: Exchange) -> io::Result<()> {
        let (request, reply) = (exchange.request as usize, exchange.reply as usize);
        put(&mut self.buffer, 0, request - HEADER);
        put(&mut self.buffer, HEADER, reply - HEADER);
        self.connection.write_all(&self.buffer[..request])?;
        let (head, body) = self.buffer.split_at_mut(HEADER);
        let received = socket::receive(&self.connection, head)?
            && socket::discard(&self.connection, &mut body[..reply - HEADER])?;
        if !received {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let announced = get(&self.buffer, 0);
        if announced == reply - HEADER { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

/// Answers a client until it closes the connection.
fn serve(connection: &mut TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    while socket::receive(connection, &mut buffer[..HEADER])? {
        let request = HEADER + get(&buffer, 0);
        let rest = buffer.get_mut(HEADER..request).ok_or(io::ErrorKind::InvalidData)?;
        if !socket::receive(connection, rest)? || request < REQUEST_HEADERS {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let reply = get(&buffer, HEADER);
        put(&mut buffer, 0, reply);
        let reply = buffer.get(..HEADER + reply).ok_or(io::ErrorKind::InvalidData)?;
        match connection.write_all(reply) {
            // The client has closed the connection.
            Err(e) if is_closed(&e) => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn get(buffer: &[u8], at: usize) -> usize {
    let bytes = buffer[at..][..HEADER].try_into().expect("these are four bytes");
    u32::from_be_bytes(bytes) as usize
}

fn put(buffer: &mut [u8], at: usize, number: usize) {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    buffer[at..][..HEADER].copy_from_slice(&number.to_be_bytes());
}

fn set_up(connection: TcpStream) -> io::Result<TcpStream> {
    connection.set_nodelay(true)?;
    socket::forget_when_closed(&connection)?;
    Ok(connection)
}

/// Forks `clients` clients, each connected to a server process of its own over the loopback
/// interface, on a free port. A client runs `body` with its number, from 0.
pub fn start(
    single: &SingleThread,
    clients: usize,
    body: impl Fn(usize, Client) -> io::Result<()>,
) -> io::Result<Vec<Forked>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?;
    let mut children = Vec::with_capacity(2 * clients);
    for nth in 0..clients {
        // Connected before the fork, so that the accept below can't block if the child dies.
        // Neither child holds the other's end, so each notices when the other dies.
        let connection = TcpStream::connect(port)?;
        let body = &body;
        children.push(single.try_fork(move || body(nth, Client::new(connection)?))?);
        let (connection, _) = listener.accept()?;
        let mut connection = set_up(connection)?;
        children.push(single.try_fork(move || serve(&mut connection))?);
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn mix_has_thousand_exchanges_in_fixed_order() {
        let count = |all: &[Exchange]| {
            let mut counts = BTreeMap::new();
            for one in all {
                *counts.entry((one.request, one.reply)).or_insert(0) += 1;
            }
            counts
        };
        assert_eq!(mix().len(), 1_000);
        assert_eq!(mix(), mix());
        assert_eq!(count(&mix())[&(59, 59 + 4_096)], 182);
        let reads: u32 = mix().iter().filter(|one| one.reply > one.request).map(|_| 1).sum();
        assert!((300..400).contains(&reads), "{reads}");
        // dbench's own load has a mean of 5428 bytes of file data per operation.
        let payload: u32 = mix().iter().map(|one| one.payload).sum();
        assert!((5_374_000..5_482_000).contains(&payload), "{payload}");
        let longest = mix().iter().map(|one| one.request.max(one.reply)).max();
        assert!(longest.is_some_and(|longest| (longest as usize) < BUFFER));
    }

    #[test]
    fn server_answers_until_client_closes_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&mut listener.accept().unwrap().0));
        let mut client = Client::new(TcpStream::connect(port).unwrap()).unwrap();
        for exchange in mix() {
            client.exchange(exchange).unwrap();
        }
        drop(client);
        server.join().unwrap().unwrap();
    }

    #[test]
    fn server_refuses_invalid_request() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.write_all(&[0xff; 8]).unwrap();
        assert!(serve(&mut server).is_err());
    }
}
