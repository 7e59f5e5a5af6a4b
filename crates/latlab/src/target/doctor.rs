//! The state of a target, as latlab's doctor there reads it.

use super::Target;
use latlab_core::machine::Machine;
use latlab_measure::session::{Collected, Session};
use latlab_part::failure::{Result, failed};
use latlab_part::progress::Stream;
use serde::Deserialize;

/// In bytes, far more than a doctor prints.
const LONGEST: u64 = 16 << 20;

/// Runs `latlab doctor` on the target `name`, and returns the machine that it has read.
pub(super) fn ask(
    target: &(impl Target + ?Sized),
    name: &str,
    session: &mut Session<'_>,
) -> Result<Machine> {
    let (mut json, mut messages) = (Collected::at_most(LONGEST), Collected::at_most(LONGEST));
    let mut keep = |stream, bytes: &[u8]| {
        let kept = match stream {
            Stream::Stdout => json.add(bytes),
            Stream::Stderr => messages.add(bytes),
        };
        kept.map_err(|why| failed(name, format!("its doctor: {why}")))
    };
    let words = ["doctor", "--json"].map(str::to_owned).to_vec();
    let code = target.command(name, words, session, &mut keep)?;
    let machine = diagnosed(code, json.bytes(), messages.bytes());
    machine.map_err(|why| failed(name, format!("its doctor: {why}")))
}

/// What `latlab doctor --json` prints, without its findings.
#[derive(Deserialize)]
struct Diagnosis {
    machine: Machine,
}

/// The machine in the output of a doctor that ended with `code`, which is 1 where findings are severe;
/// otherwise the reason why it has none.
pub fn diagnosed(code: u8, json: &[u8], messages: &[u8]) -> std::result::Result<Machine, String> {
    if code > 1 {
        let messages = String::from_utf8_lossy(messages);
        let last = messages.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map(|line| line.trim_start_matches("latlab: ").to_owned());
        return Err(last.unwrap_or_else(|| format!("it ended with {code}")));
    }
    let diagnosis: Diagnosis = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    Ok(diagnosis.machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn doctor_that_fails_is_reported_with_its_last_message() {
        let json = json!({ "machine": Machine::default(), "findings": [] }).to_string();
        let said = |code, messages: &str| diagnosed(code, json.as_bytes(), messages.as_bytes());
        assert_eq!(said(0, ""), Ok(Machine::default()));
        assert_eq!(said(1, "latlab: 1 severe finding\n"), Ok(Machine::default()));
        let messages = "latlab: restored ksm\nlatlab: /sys: no memory\n\n";
        assert_eq!(said(2, messages), Err("/sys: no memory".to_owned()));
        assert_eq!(said(3, "\n"), Err("it ended with 3".to_owned()));
    }
}
