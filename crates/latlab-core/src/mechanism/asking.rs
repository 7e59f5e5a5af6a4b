//! What programs say to the adaptive daemon over its socket, and what it answers: a line each.

use super::configuration::Configuration;
use std::fmt;

/// What a program asks. It is meant for the program's own process, whoever says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `groups AUDIO,NETWORK`: from now on and until it ends, the process needs these device
    /// groups and no others.
    Groups(Vec<String>),
    /// `release`: it needs none any more.
    Release,
    /// `status`: what is at work?
    Status,
}

/// What the daemon answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `ok …`: it is done; behind it, what is now so.
    Ok(String),
    /// `wrong …`: this can't be asked; behind it, why, as a sentence.
    Wrong(String),
    /// `denied …`: this may not be asked, or not now; behind it, why, as a sentence.
    Denied(String),
}

/// Bytes of the longest line that is listened to, its end included.
pub const LONGEST: usize = 256;

/// The line in what a program has sent so far; none where it goes on. Refused, in a sentence, where
/// it is too long, no text, or not the only one.
pub fn line(sent: &[u8]) -> Result<Option<&str>, String> {
    let end = sent.iter().position(|byte| *byte == b'\n');
    if end.unwrap_or(sent.len()) >= LONGEST {
        return Err(format!("a request is one line of at most {LONGEST} bytes"));
    }
    let Some(end) = end else { return Ok(None) };
    if end + 1 < sent.len() {
        return Err("one request at a time: wait for its answer".to_owned());
    }
    let text = std::str::from_utf8(&sent[..end]).ok();
    let text = text.filter(|text| !text.contains(char::is_control));
    text.map(Some).ok_or_else(|| "a request is a line of text".to_owned())
}

impl Ask {
    /// What a line means. Groups are called as the configuration does. Refused in a sentence.
    pub fn read(line: &str, configuration: &Configuration) -> Result<Ask, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("groups", "") => Err("groups of which devices? as: groups AUDIO,NETWORK".to_owned()),
            ("groups", list) => groups(list, configuration).map(Ask::Groups),
            ("release", "") => Ok(Ask::Release),
            ("status", "") => Ok(Ask::Status),
            _ => {
                let shown: String = line.chars().take(40).collect();
                Err(format!("'{shown}' is none of: groups NAME,…; release; status"))
            }
        }
    }
}

/// The groups in a list with commas, each once.
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
    /// Reads a line without its end; none where it is no answer.
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

/// A line without its end.
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

    fn read(line: &str) -> Result<Ask, String> {
        Ask::read(line, &Configuration::read("").unwrap())
    }

    #[test]
    fn requests_are_read_whatever_the_case_of_their_groups() {
        let both = ["AUDIO", "NETWORK"].map(str::to_owned).to_vec();
        assert_eq!(read("groups audio,Network,AUDIO"), Ok(Ask::Groups(both.clone())));
        assert_eq!(read("groups  AUDIO , NETWORK "), Ok(Ask::Groups(both)));
        assert_eq!(read("release"), Ok(Ask::Release));
        assert_eq!(read("status"), Ok(Ask::Status));
    }

    #[test]
    fn what_can_t_be_asked_is_refused_with_what_can() {
        let why = read("groups audoi").unwrap_err();
        assert_eq!(why, "there is no device group 'audoi': did you mean AUDIO?");
        assert!(read("groups").unwrap_err().contains("as: groups AUDIO,NETWORK"));
        assert!(read("groups AUDIO,").unwrap_err().contains("there is no device group ''"));
        for line in ["", "status now", "release AUDIO", "GROUPS AUDIO", "groups\tAUDIO"] {
            assert!(read(line).unwrap_err().contains("is none of: groups"), "{line}");
        }
    }

    #[test]
    fn a_line_has_an_end_and_nothing_behind_it() {
        assert_eq!(line(b""), Ok(None));
        assert_eq!(line(b"sta"), Ok(None));
        assert_eq!(line(b"status\n"), Ok(Some("status")));
        assert!(line(b"status\nstatus").unwrap_err().contains("one request at a time"));
        assert!(line(b"\xff\n").unwrap_err().contains("a line of text"));
        assert!(line(b"status\r\n").unwrap_err().contains("a line of text"));
        assert_eq!(line(&[b'x'; LONGEST - 1]), Ok(None));
        assert!(line(&[b'x'; LONGEST]).unwrap_err().contains("at most 256 bytes"));
        let mut longest = vec![b'x'; LONGEST - 1];
        longest.push(b'\n');
        assert!(line(&longest).unwrap().is_some());
    }

    proptest! {
        #[test]
        fn an_answer_is_read_as_it_was_written(rest in "[^\n]{0,80}", kind in 0..3) {
            let answer = match kind {
                0 => Answer::Ok(rest),
                1 => Answer::Wrong(rest),
                _ => Answer::Denied(rest),
            };
            prop_assert_eq!(Answer::read(&answer.to_string()), Some(answer));
        }

        #[test]
        fn whatever_is_sent_is_understood_or_refused_in_one_line(
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
