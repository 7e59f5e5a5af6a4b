//! As much of HTTP/1.1 as serving one page of text takes (RFC 9112).

use super::client::Said;

/// Bytes of the longest request that is listened to.
pub(super) const LONGEST: usize = 4096;

/// The answer to what was heard so far; none where the request goes on. The page is made if it is
/// asked for.
pub(super) fn answer(heard: &[u8], page: impl FnOnce() -> String) -> Option<Said> {
    let end = heard.windows(4).any(|four| four == b"\r\n\r\n");
    if !end && heard.len() <= LONGEST {
        return None;
    }
    let line = heard.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let (status, text) = match words.as_slice() {
        _ if !end => ("431 Request Header Fields Too Large", "too long\n".to_owned()),
        [b"GET", b"/metrics" | b"/", version] if version.starts_with(b"HTTP/1.") => {
            ("200 OK", page())
        }
        [b"GET", _, version] if version.starts_with(b"HTTP/1.") => {
            ("404 Not Found", "there is nothing but /metrics\n".to_owned())
        }
        [_, _, version] if version.starts_with(b"HTTP/1.") => {
            ("405 Method Not Allowed", "there is nothing but GET /metrics\n".to_owned())
        }
        _ => ("400 Bad Request", "this is no request of HTTP/1.1\n".to_owned()),
    };
    let length = text.len();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    );
    Some(Said { answer, last: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(request: &[u8]) -> String {
        answer(request, || "latlab 1\n".to_owned()).expect("it is whole").answer
    }

    #[test]
    fn the_page_is_given_to_who_asks_for_it() {
        let said = answered(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        assert!(
            said.ends_with("Content-Length: 9\r\nConnection: close\r\n\r\nlatlab 1\n"),
            "{said}"
        );
    }

    #[test]
    fn who_asks_for_something_else_hears_what_there_is() {
        for (request, status) in [
            (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics\r\n\r\n", "400"),
            (b"\r\n\r\n", "400"),
            (&[b'x'; LONGEST + 1], "431"),
        ] {
            let said = answered(request);
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
        }
        assert!(answer(b"GET /metrics HTTP/1.1\r\n", String::new).is_none(), "it goes on");
    }
}
