//! The part of HTTP/1.1 that serves one page of text (RFC 9112).

use super::connection::Reply;

/// Bytes of the longest request that is accepted.
pub const LONGEST: usize = 4096;

/// The reply to the bytes received so far; none if the request is incomplete. `page` is called for
/// a request of the page only.
pub fn reply(received: &[u8], page: impl FnOnce() -> String) -> Option<Reply> {
    let end = received.windows(4).any(|four| four == b"\r\n\r\n");
    if !end && received.len() <= LONGEST {
        return None;
    }
    let line = received.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let (status, text) = match words.as_slice() {
        _ if !end => {
            ("431 Request Header Fields Too Large", "the request is too long\n".to_owned())
        }
        [b"GET", b"/metrics" | b"/", version] if version.starts_with(b"HTTP/1.") => {
            ("200 OK", page())
        }
        [b"GET", _, version] if version.starts_with(b"HTTP/1.") => {
            ("404 Not Found", "only /metrics is served\n".to_owned())
        }
        [_, _, version] if version.starts_with(b"HTTP/1.") => {
            ("405 Method Not Allowed", "only GET /metrics is served\n".to_owned())
        }
        _ => ("400 Bad Request", "not a request of HTTP/1.1\n".to_owned()),
    };
    let length = text.len();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    );
    Some(Reply { text, last: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replied(request: &[u8]) -> String {
        reply(request, || "latlab 1\n".to_owned()).expect("the request is complete").text
    }

    #[test]
    fn get_metrics_returns_page() {
        let reply = replied(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(
            reply.ends_with("Content-Length: 9\r\nConnection: close\r\n\r\nlatlab 1\n"),
            "{reply}"
        );
    }

    #[test]
    fn other_requests_return_error_status() {
        for (request, status) in [
            (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics\r\n\r\n", "400"),
            (b"\r\n\r\n", "400"),
            (&[b'x'; LONGEST + 1], "431"),
        ] {
            let reply = replied(request);
            assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        }
        assert!(reply(b"GET /metrics HTTP/1.1\r\n", String::new).is_none(), "incomplete");
    }
}
