//! Protocol of the adaptive daemon's socket: requests and answers of one line each.

use super::configuration::Configuration;
use std::fmt;

/// A request. It always concerns the process that sends it, or one thread of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `groups AUDIO,NETWORK`: the process needs these device groups and no others, until it ends
    /// or sends another request. `groups AUDIO thread 4711`: the same for one of its threads.
    Groups {
        /// The names of the groups in the configuration.
        groups: Vec<String>,
        /// The id of the thread; none for all threads.
        thread: Option<i32>,
    },
    /// `release`: the process and its threads no longer need any device group. `release thread
    /// 4711`: that thread no longer does.
    Release {
        /// The id of the thread; none for the process with all its threads.
        thread: Option<i32>,
    },
    /// `status`: asks for the state of the daemon.
    Status,
}

/// The answer of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `ok …`: the request was carried out; the result follows.
    Ok(String),
    /// `wrong …`: the request is invalid; the reason follows, as a sentence.
    Wrong(String),
    /// `denied …`: the request is not permitted, or not now; the reason follows, as a sentence.
    Denied(String),
}

/// Maximum length of a request in bytes, the newline included.
pub const LONGEST: usize = 256;

/// Returns the line in the bytes a program has sent so far, or none if it is not complete. Refuses,
/// in a sentence, a line that is too long or not text, and more than one line.
pub fn line(sent: &[u8]) -> Result<Option<&str>, String> {
    let end = sent.iter().position(|byte| *byte == b'\n');
    if end.unwrap_or(sent.len()) >= LONGEST {
        return Err(format!("the request is longer than {LONGEST} bytes"));
    }
    let Some(end) = end else { return Ok(None) };
    if end + 1 < sent.len() {
        return Err("more than one request at a time: wait for the answer to the first".to_owned());
    }
    let text = std::str::from_utf8(&sent[..end]).ok();
    let text = text.filter(|text| !text.contains(char::is_control));
    text.map(Some).ok_or_else(|| "the request is not a line of text".to_owned())
}

impl Command {
    /// Parses a line, with the group names of the configuration. Refuses it in a sentence.
    pub fn read(line: &str, configuration: &Configuration) -> Result<Command, String> {
        let (before, thread) = thread(line)?;
        let (word, rest) = before.split_once(' ').unwrap_or((before, ""));
        match (word, rest.trim()) {
            ("groups", "") => Err("no group is named: write groups AUDIO,NETWORK".to_owned()),
            ("groups", list) => {
                Ok(Command::Groups { groups: groups(list, configuration)?, thread })
            }
            ("release", "") => Ok(Command::Release { thread }),
            ("status", "") if thread.is_none() => Ok(Command::Status),
            _ => {
                let shown: String = line.chars().take(40).collect();
                Err(format!("unknown request '{shown}': write groups NAME,…; release; or status"))
            }
        }
    }
}

/// Splits ` thread 4711` off the end of a line. Refuses anything but the ID of a thread.
fn thread(line: &str) -> Result<(&str, Option<i32>), String> {
    let Some((before, id)) = line.split_once(" thread ") else { return Ok((line, None)) };
    let id = id.trim();
    let id = id.parse().ok().filter(|id| *id > 0).ok_or_else(|| {
        let shown: String = id.chars().take(40).collect();
        format!("'{shown}' is not the id of a thread: write groups AUDIO thread 4711")
    })?;
    Ok((before, Some(id)))
}

/// The groups in a comma-separated list, without duplicates.
fn groups(list: &str, configuration: &Configuration) -> Result<Vec<String>, String> {
    let mut groups: Vec<String> = Vec::new();
    for name in list.split(',') {
        let name = &configuration.group(name.trim())?.name;
        if !groups.contains(name) {
            groups.push(name.clone());
        }
    }
    Ok(groups)
}

impl Answer {
    /// Parses a line without its newline; none if it is not an answer.
    pub fn read(line: &str) -> Option<Answer> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.to_owned();
        match word {
            "ok" => Some(Answer::Ok(rest)),
            "wrong" => Some(Answer::Wrong(rest)),
            "denied" => Some(Answer::Denied(rest)),
            _ => None,
        }
    }
}

/// A line without its newline.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, rest) = match self {
            Answer::Ok(rest) => ("ok", rest),
            Answer::Wrong(rest) => ("wrong", rest),
            Answer::Denied(rest) => ("denied", rest),
        };
        f.write_str(word)?;
        if rest.is_empty() { Ok(()) } else { write!(f, " {rest}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<Command, String> {
        Command::read(line, &Configuration::read("").unwrap())
    }

    #[test]
    fn request_is_read_in_any_case_of_group_names() {
        let both = ["AUDIO", "NETWORK"].map(str::to_owned).to_vec();
        let of = |thread| Ok(Command::Groups { groups: both.clone(), thread });
        assert_eq!(read("groups audio,Network,AUDIO"), of(None));
        assert_eq!(read("groups  AUDIO , NETWORK "), of(None));
        assert_eq!(read("groups AUDIO,NETWORK thread 4711"), of(Some(4711)));
        assert_eq!(read("release"), Ok(Command::Release { thread: None }));
        assert_eq!(read("release thread 4711"), Ok(Command::Release { thread: Some(4711) }));
        assert_eq!(read("status"), Ok(Command::Status));
    }

    #[test]
    fn thread_of_a_request_is_a_positive_number() {
        for id in ["0", "-1", "self", "", "2147483648", "4711 thread 4712"] {
            let why = read(&format!("groups AUDIO thread {id}")).unwrap_err();
            assert!(why.contains("is not the id of a thread"), "{id}: {why}");
        }
    }

    #[test]
    fn invalid_request_is_refused_with_valid_ones() {
        let why = read("groups audoi").unwrap_err();
        assert_eq!(why, "there is no device group 'audoi': did you mean AUDIO?");
        assert!(read("groups").unwrap_err().contains("write groups AUDIO,NETWORK"));
        assert!(read("groups AUDIO,").unwrap_err().contains("there is no device group ''"));
        for line in [
            "",
            "status now",
            "status thread 1",
            "thread 4711",
            "release AUDIO",
            "GROUPS AUDIO",
            "groups\tAUDIO",
        ] {
            assert!(
                read(line).unwrap_err().contains("write groups NAME,…; release; or status"),
                "{line}"
            );
        }
    }

    #[test]
    fn line_ends_with_newline_and_has_no_bytes_after_it() {
        assert_eq!(line(b""), Ok(None));
        assert_eq!(line(b"sta"), Ok(None));
        assert_eq!(line(b"status\n"), Ok(Some("status")));
        assert!(line(b"status\nstatus").unwrap_err().contains("more than one request at a time"));
        assert!(line(b"\xff\n").unwrap_err().contains("not a line of text"));
        assert!(line(b"status\r\n").unwrap_err().contains("not a line of text"));
        assert_eq!(line(&[b'x'; LONGEST - 1]), Ok(None));
        assert!(line(&[b'x'; LONGEST]).unwrap_err().contains("longer than 256 bytes"));
        let mut longest = vec![b'x'; LONGEST - 1];
        longest.push(b'\n');
        assert!(line(&longest).unwrap().is_some());
    }

    proptest! {
        #[test]
        fn answer_survives_formatting_and_parsing(rest in "[^\n]{0,80}", kind in 0..3) {
            let answer = match kind {
                0 => Answer::Ok(rest),
                1 => Answer::Wrong(rest),
                _ => Answer::Denied(rest),
            };
            prop_assert_eq!(Answer::read(&answer.to_string()), Some(answer));
        }

        #[test]
        fn request_of_any_bytes_is_parsed_or_refused_in_one_line(
            sent in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            match line(&sent) {
                Ok(None) => prop_assert!(!sent.contains(&b'\n') && sent.len() < LONGEST),
                Ok(Some(line)) => {
                    if let Err(why) = read(line) {
                        prop_assert!(!why.contains('\n'));
                    }
                }
                Err(why) => prop_assert!(!why.contains('\n')),
            }
        }
    }
}
