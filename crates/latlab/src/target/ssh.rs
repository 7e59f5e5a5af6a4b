//! Another machine, as `ssh` reaches it: a board on the desk.
//!
//! All goes over one connection of the user's own OpenSSH client, so that it asks at most once:
//! this very program is copied to a fresh folder there, carries the plan out as `latlab agent`,
//! and is removed. As long as the connection's stdin is open, somebody is waiting here; the far
//! side ends by itself when it is closed, however that came about.

mod host;
mod session;

use super::Target;
use crate::engine::Outcome;
use crate::errand::Errand;
use crate::failure::{Failure, Result, failed};
use crate::message::{END, KEPT, Message, RECEIVED};
use crate::registry::About;
use host::Host;
use latlab_core::plan::Plan;
use latlab_core::record::Warning;
use session::{Heard, Session};
use std::env::consts::ARCH;

pub(super) const ABOUT: About =
    About { name: "ssh", summary: "another machine, by ssh:[USER@]HOST[:PORT]" };

pub(super) struct Ssh;

impl Target for Ssh {
    /// One after another: somebody may be asked for a password.
    fn run(&self, plans: &[Plan], errand: &mut Errand<'_>) -> Vec<Result<Outcome>> {
        let begin = |(place, plan): (usize, &Plan)| {
            errand.go_on(&plan.target)?;
            let outcome = carry_out(plan, errand);
            errand.came(place, &outcome);
            outcome
        };
        plans.iter().enumerate().map(begin).collect()
    }
}

/// What the far side's shell does, without a single quote or a new line, which not every login
/// shell would hand on. `SIZE` stands for the size of the program in bytes, `KEPT` for [`KEPT`].
///
/// A folder is good that is ours alone, has room, and lets programs run: not one that is mounted
/// noexec. `head` may read too far, so nothing is sent after the program until it has come.
/// What lies in the folder in the end is a record that nobody received, or nothing.
const SCRIPT: &str = "\
    trap \"\" HUP PIPE; folder=; why=; \
    for place in \"${TMPDIR:-/tmp}\" /var/tmp \"$HOME\"; do \
      new=$(mktemp -d \"$place/latlab.XXXXXX\" 2>&1) || { why=\"$why$new; \"; continue; }; \
      set -- $(df -Pk \"$new\" 2>/dev/null | tail -n 1); \
      if [ \"${4:-999999999}\" -lt $((SIZE / 1024 + 4096)) ]; then \
        why=\"$why$place has no room for $((SIZE / 1048576 + 4)) MiB; \"; \
      elif echo : >\"$new/latlab\" && chmod 700 \"$new/latlab\" && \"$new/latlab\" 2>/dev/null; then \
        folder=$new; break; \
      else why=\"$why$place lets no program run; \"; fi; \
      rm -rf \"$new\"; \
    done; \
    [ -n \"$folder\" ] || { echo \"latlab: nowhere $why\"; exit 1; }; \
    echo \"latlab: here $(uname -s) $(uname -m) $folder\"; \
    head -c SIZE >\"$folder/latlab\"; \
    if [ $(wc -c <\"$folder/latlab\") -eq SIZE ]; then \
      echo \"latlab: copied\"; \"$folder/latlab\" agent \"$folder\"; echo \"latlab: over\"; \
    fi; \
    rm -f \"$folder/latlab\"; [ -e \"$folder/KEPT\" ] || rm -rf \"$folder\"";

/// What the far side's shell says, each before a blank and more, or alone on its line.
const HERE: &str = "latlab: here ";
const NOWHERE: &str = "latlab: nowhere ";
const COPIED: &str = "latlab: copied";
const OVER: &str = "latlab: over";

fn carry_out(plan: &Plan, errand: &mut Errand<'_>) -> Result<Outcome> {
    let host = Host::of(&plan.target)?;
    let program = std::fs::read("/proc/self/exe").map_err(|e| failed("our own program", e))?;
    let script = SCRIPT.replace("SIZE", &program.len().to_string()).replace("KEPT", KEPT);
    let session = Session::open(&host, &script, errand.limit)?;
    let mut visit = Visit { host, session, errand };
    let outcome = visit.make(plan, program);
    visit.leave();
    outcome
}

/// What is done on one host.
struct Visit<'a, 'e> {
    host: Host,
    session: Session,
    errand: &'a mut Errand<'e>,
}

impl Visit<'_, '_> {
    fn make(&mut self, plan: &Plan, program: Vec<u8>) -> Result<Outcome> {
        let folder = self.arrive()?;
        self.copy(program)?;
        let mut plan = serde_json::to_string(plan).expect("a plan is plain data");
        plan.push('\n');
        self.session.send(plan.into_bytes());
        match self.work(&folder)? {
            Message::Record { record, verdict } => {
                self.session.send_word(RECEIVED);
                let mut record = *record;
                let complaints = self.session.complaints();
                record.warnings.extend(
                    complaints
                        .map(|text| Warning::new("far-side", format!("{}: {text}", self.host))),
                );
                Ok(Outcome { record, verdict })
            }
            Message::Failed(failure) => Err(failure),
            _ => Err(failed(&self.host.to_string(), "it answers what was not asked")),
        }
    }

    /// Waits until we are let in, and looks whether we can work there. The folder we are given.
    fn arrive(&mut self) -> Result<String> {
        let host = self.host.clone();
        loop {
            let line = self.next_line(|why| {
                format!("no connection to {host}: {why}; try it by hand with: {}", host.command())
            })?;
            if let Some(why) = line.strip_prefix(NOWHERE) {
                let why = why.trim_end_matches("; ");
                return Err(Failure::Failed(format!(
                    "{host} has no folder for latlab: {why}; name one there in TMPDIR, or make room"
                )));
            }
            let Some(words) = line.strip_prefix(HERE) else {
                // The login shell's, which may say why it lets nobody in.
                self.session.complain(line);
                continue;
            };
            let mut words = words.splitn(3, ' ').map(str::to_owned);
            let mut word = || words.next().unwrap_or_default();
            let (system, machine, folder) = (word(), word(), word());
            return suits(&host, &system, &machine).map(|()| folder);
        }
    }

    fn copy(&mut self, program: Vec<u8>) -> Result<()> {
        let host = self.host.clone();
        self.errand.watch.note(&format!("copying latlab to {host}"));
        self.session.send(program);
        while self.next_line(|why| format!("latlab could not be copied to {host}: {why}"))?
            != COPIED
        {}
        self.errand.watch.note("");
        self.session.forget_complaints();
        Ok(())
    }

    /// The next line from the far side before it measures; a request to end is obeyed at once.
    fn next_line(&mut self, sentence: impl Fn(&str) -> String) -> Result<String> {
        match self.session.hear(self.errand) {
            Heard::Line(line) => Ok(line),
            Heard::RequestToEnd => {
                self.session.kill();
                Err(Failure::Failed("ended before anything was measured".to_owned()))
            }
            Heard::Nothing(why) => Err(Failure::Failed(sentence(&why))),
        }
    }

    /// Looks on while the far side measures. Its answer.
    fn work(&mut self, folder: &str) -> Result<Message> {
        let mut over = false;
        loop {
            match self.session.hear(self.errand) {
                Heard::RequestToEnd => self.session.send_word(END),
                Heard::Nothing(why) if over => {
                    let what = format!("latlab ended without an answer on {}", self.host);
                    return Err(failed(&what, why));
                }
                Heard::Nothing(why) => return Err(self.lost(folder, &why)),
                Heard::Line(line) if line == OVER => over = true,
                Heard::Line(line) => {
                    if let Some(answer) = Message::read(&line)?.relay(self.errand.watch) {
                        return Ok(answer);
                    }
                }
            }
        }
    }

    fn lost(&self, folder: &str, why: &str) -> Failure {
        let (host, ssh) = (&self.host, self.host.command());
        Failure::Failed(format!(
            "no more is heard of {host} ({why}): it ends the run when it notices, and keeps what \
             was measured; fetch that and clear up there with: \
             {ssh} 'cat {folder}/{KEPT} && rm -r {folder}' >{KEPT}"
        ))
    }

    /// Waits until the far side has cleared up, if it can be reached.
    fn leave(self) {
        self.errand.watch.end();
        self.errand.watch.note("");
        self.session.close(self.errand);
    }
}

/// Whether this program runs there.
fn suits(host: &Host, system: &str, machine: &str) -> Result<()> {
    if system != "Linux" {
        return Err(Failure::Unsupported(format!(
            "{host} runs {system}: latlab measures Linux and nothing else"
        )));
    }
    if machine != ARCH {
        return Err(Failure::Unsupported(format!(
            "{host} is a machine of the kind {machine}, and this latlab is built for {ARCH}: a \
             latlab built for {machine} is needed; start that one there"
        )));
    }
    Ok(())
}
