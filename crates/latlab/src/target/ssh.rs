//! `ssh:[USER@]HOST[:PORT]`: another machine, reached with the user's OpenSSH client.
//!
//! Everything goes over one connection, so that the client asks for a password at most once. This
//! program is copied to a new folder on the host, carries out the plan or the command there as
//! `latlab agent`, and is removed. While the connection's stdin is open, latlab waits here; the agent
//! ends by itself when it is closed, for whatever reason.

pub mod connection;
pub mod host;

use super::{Target, in_turn};
use connection::{Connection, Event};
use host::Host;
use latlab_core::machine::{Machine, TimeDomain};
use latlab_core::plan::Plan;
use latlab_core::record::{Warning, WarningCode};
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::message::{END, KEPT, Message, RECEIVED, Task, output_bytes};
use latlab_measure::session::{Limit, Output, Session};
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_part::part::{About, Describe};
use std::env::consts::ARCH;

pub(super) struct Ssh;

impl Describe for Ssh {
    const ABOUT: About =
        About { name: "ssh", summary: "another machine, by ssh:[USER@]HOST[:PORT]" };
}

impl Target for Ssh {
    /// One plan after another: the user may be asked for a password.
    fn run(&self, plans: &[Prepared], session: &mut Session<'_>) -> Vec<Result<Outcome>> {
        in_turn(plans, session, |plan, session| carry_out(plan.plan(), session))
    }

    fn running(&self, name: &str, session: &mut Session<'_>) -> Result<Option<Machine>> {
        self.machine(name, session).map(Some)
    }

    fn command(
        &self,
        name: &str,
        words: Vec<String>,
        session: &mut Session<'_>,
        output: &mut Output<'_>,
    ) -> Result<u8> {
        with_agent(name, session, |agent| agent.execute(words, output))
    }
}

/// The script of the shell on the host, without single quotes and new lines, which not every login
/// shell passes on. `SIZE` stands for the size of the program in bytes, `KEPT` for [`KEPT`].
///
/// It looks for a folder that is private, has room, and is not mounted noexec. `head` may read too
/// far, so nothing is sent after the program until the script has reported it copied. The empty line
/// ends a line that the login shell has begun, as with a prompt. In the end the folder holds a record that was not received, or is removed.
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
    [ -n \"$folder\" ] || { echo; echo \"latlab: nowhere $why\"; exit 1; }; \
    echo; echo \"latlab: here $(uname -s) $(uname -m) $folder\"; \
    head -c SIZE >\"$folder/latlab\"; \
    if [ $(wc -c <\"$folder/latlab\") -eq SIZE ]; then \
      echo \"latlab: copied\"; \"$folder/latlab\" agent \"$folder\"; echo \"latlab: over\"; \
    fi; \
    rm -f \"$folder/latlab\"; [ -e \"$folder/KEPT\" ] || rm -rf \"$folder\"";

/// Lines of the script: a prefix, or the whole line.
const HERE: &str = "latlab: here ";
const NOWHERE: &str = "latlab: nowhere ";
const COPIED: &str = "latlab: copied";
const OVER: &str = "latlab: over";

fn carry_out(plan: &Plan, session: &mut Session<'_>) -> Result<Outcome> {
    with_agent(&plan.target, session, |agent| agent.carry_out(plan))
}

/// Does `work` with an agent on the host, and removes the agent.
fn with_agent<T>(
    target: &str,
    session: &mut Session<'_>,
    work: impl FnOnce(&mut Agent<'_, '_>) -> Result<T>,
) -> Result<T> {
    let host = Host::of(target)?;
    let program = std::fs::read("/proc/self/exe").context("latlab's own program")?;
    let script = SCRIPT.replace("SIZE", &program.len().to_string()).replace("KEPT", KEPT);
    let connection = Connection::open(&host, &script, session.limit.map(Limit::length))?;
    let mut agent = Agent { host, connection, session, folder: String::new(), greeting: 0 };
    let result = agent.copy(program).and_then(|()| work(&mut agent));
    agent.close();
    result
}

/// The agent on one host.
struct Agent<'a, 's> {
    host: Host,
    connection: Connection,
    session: &'a mut Session<'s>,
    /// Its folder on the host.
    folder: String,
    /// Number of lines on stdout before it could start.
    greeting: usize,
}

/// The largest number of lines that a login shell may write before the agent starts.
const LONGEST_GREETING: usize = 10_000;

impl Agent<'_, '_> {
    fn carry_out(&mut self, plan: &Plan) -> Result<Outcome> {
        self.send(&Task::Plan(Box::new(plan.clone())));
        match self.answer(Some(plan), Agent::lost_run)? {
            Message::Record { record, verdict } => {
                self.connection.send_word(RECEIVED);
                let mut record = *record;
                let complaints = self.connection.complaints();
                record.warnings.extend(complaints.map(|text| {
                    Warning::new(WarningCode::RemoteStderr, format!("{}: {text}", self.host))
                }));
                Ok(Outcome { record, verdict })
            }
            other => Err(self.refusal(other)),
        }
    }

    /// Runs latlab there with these words. Returns its exit code.
    fn execute(&mut self, words: Vec<String>, output: &mut Output<'_>) -> Result<u8> {
        self.send(&Task::Command(words));
        loop {
            match self.answer(None, Agent::lost_command)? {
                Message::Output { stream, base64 } => output(stream, &output_bytes(&base64)?)?,
                Message::Exited(code) => return Ok(code),
                other => return Err(self.refusal(other)),
            }
        }
    }

    fn send(&mut self, task: &Task) {
        let task = serde_json::to_string(task).expect("a task is plain data");
        self.connection.send_word(&task);
    }

    /// The failure that a message means if it is no answer.
    fn refusal(&self, message: Message) -> Failure {
        match message {
            Message::Failed(failure) => failure.about(&self.host.to_string()),
            _ => failed(&self.host.to_string(), "it sent an unexpected answer"),
        }
    }

    /// Waits for the connection and checks that this program can run on the host.
    fn find_folder(&mut self) -> Result<()> {
        let host = self.host.clone();
        loop {
            let line = self.next_line(|why| {
                format!("no connection to {host}: {why}; try it by hand with: {}", host.command())
            })?;
            if let Some(why) = line.strip_prefix(NOWHERE) {
                let why = why.trim_end_matches([';', ' ']);
                return Err(Failure::failed(format!(
                    "{host} has no folder for latlab: {why}; set TMPDIR there to another one, or make room"
                )));
            }
            let Some(words) = line.strip_prefix(HERE) else {
                // Output of the login shell, which may say why it refuses.
                self.connection.complain(line);
                continue;
            };
            let mut words = words.splitn(3, ' ').map(str::to_owned);
            let mut word = || words.next().unwrap_or_default();
            let (system, machine, folder) = (word(), word(), word());
            check_machine(&host, &system, &machine)?;
            self.folder = check_folder(&host, folder)?;
            return Ok(());
        }
    }

    fn copy(&mut self, program: Vec<u8>) -> Result<()> {
        self.find_folder()?;
        let host = self.host.clone();
        self.session.watch.note(&format!("copying latlab to {host}"));
        self.connection.send(program);
        while self.next_line(|why| format!("latlab could not be copied to {host}: {why}"))?
            != COPIED
        {}
        self.session.watch.note("");
        self.connection.forget_complaints();
        Ok(())
    }

    /// The next line from the host before it measures; a request to end is obeyed at once, and a host
    /// that greets for ever is left.
    fn next_line(&mut self, sentence: impl Fn(&str) -> String) -> Result<String> {
        match self.connection.next(self.session) {
            Event::Line(line) if self.greeting < LONGEST_GREETING => {
                self.greeting += 1;
                Ok(line)
            }
            Event::Line(_) => {
                self.connection.kill();
                let why = format!("it wrote {LONGEST_GREETING} lines that latlab does not expect");
                Err(Failure::failed(sentence(&why)))
            }
            Event::RequestToEnd => {
                self.connection.kill();
                Err(Failure::cut_short("ended before anything was measured"))
            }
            Event::Closed(why) => Err(Failure::failed(sentence(&why))),
        }
    }

    /// Shows progress while the host works. Returns its next other message; records are those of
    /// `plan`. If the connection is lost, `lost` explains what is left of the work, with the
    /// reason.
    fn answer(&mut self, plan: Option<&Plan>, lost: fn(&Self, &str) -> String) -> Result<Message> {
        let mut over = false;
        loop {
            match self.connection.next(self.session) {
                Event::RequestToEnd => self.connection.send_word(END),
                Event::Closed(why) if over => {
                    let what = format!("latlab ended without an answer on {}", self.host);
                    return Err(failed(&what, why));
                }
                Event::Closed(why) => return Err(Failure::failed(lost(self, &why))),
                Event::Line(line) if line == OVER => over = true,
                Event::Line(line) => {
                    if let Some(answer) = self.read(&line, plan)?.relay(self.session.watch) {
                        return Ok(answer);
                    }
                }
            }
        }
    }

    /// The message in a line; a record in it is one of `plan`.
    fn read(&self, line: &str, plan: Option<&Plan>) -> Result<Message> {
        let message = Message::read(line)
            .and_then(|message| message.check_origin(plan, TimeDomain::Silicon).map(|()| message));
        let refused = |failure: Failure| match plan {
            Some(_) => self.left_there(&failure),
            None => failure.about(&self.host.to_string()),
        };
        message.map_err(refused)
    }

    fn lost_run(&self, why: &str) -> String {
        let (host, fetch) = (&self.host, self.fetch());
        format!(
            "the connection to {host} was lost ({why}): the host ends the run when it notices, and \
             keeps what was measured; fetch that and clean up there with: {fetch}"
        )
    }

    /// The failure of a run whose record is refused for this reason. The host keeps the record, as nobody
    /// has received it.
    fn left_there(&self, why: &Failure) -> Failure {
        let (host, fetch) = (&self.host, self.fetch());
        Failure::failed(format!(
            "{host}: {why}; the host keeps what it has measured: fetch that and clean up there with: \
             {fetch}"
        ))
    }

    /// The command that fetches the record that the host keeps, and cleans up there.
    fn fetch(&self) -> String {
        let (ssh, folder) = (self.host.command(), &self.folder);
        format!("{ssh} 'cat {folder}/{KEPT} && rm -r {folder}' >{KEPT}")
    }

    fn lost_command(&self, why: &str) -> String {
        let host = &self.host;
        format!(
            "the connection to {host} was lost ({why}): the host ends the program when it notices; \
             start it again"
        )
    }

    /// Waits until the host has cleaned up, if it can be reached.
    fn close(self) {
        self.session.watch.end();
        self.session.watch.note("");
        self.connection.close(self.session);
    }
}

/// Checks a folder, which becomes part of a command that the user is advised to run.
pub fn check_folder(host: &Host, folder: String) -> Result<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if folder.starts_with('/') && folder.chars().all(plain) {
        return Ok(folder);
    }
    Err(Failure::failed(format!(
        "{host} names a folder with unusual characters, {folder:?}: set TMPDIR there to another one"
    )))
}

/// Checks that this program can run there.
fn check_machine(host: &Host, system: &str, machine: &str) -> Result<()> {
    if system != "Linux" {
        return Err(Failure::unsupported(format!(
            "{host} runs {system}: latlab measures Linux only"
        )));
    }
    if machine != ARCH {
        return Err(Failure::unsupported(format!(
            "{host} is a {machine} machine, and this latlab is built for {ARCH}: start a latlab built \
             for {machine} there"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_a_shell_would_take_for_commands_is_refused() {
        let host = Host::of("ssh:board").unwrap();
        let check = |folder: &str| check_folder(&host, folder.to_owned());
        for folder in ["/tmp/latlab.Ab12cd", "/home/me@home/a_b-c+d"] {
            assert_eq!(check(folder), Ok(folder.to_owned()));
        }
        for folder in [
            "",
            "tmp",
            "-rf",
            "/tmp; rm -rf ~",
            "/tmp/$(id)",
            "/a'b",
            "/a b",
            "/a\n",
            "/~",
            "/*",
            "/\u{e9}",
        ] {
            let sentence = check(folder).unwrap_err().to_string();
            assert!(
                sentence.starts_with("board names a folder with unusual characters"),
                "{sentence}"
            );
            assert!(sentence.contains(&format!("{folder:?}")), "{sentence}");
        }
    }
}
