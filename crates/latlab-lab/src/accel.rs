//! The accelerator of a virtual machine: KVM where a test boot shows that it works.

use super::cells::ask;
use super::guest::{Cell, GuestTime, Job, PROGRAM, Variables};
use super::kernel::{self, Kernel};
use super::prepare;
use latlab_core::time::Nanos;
use latlab_measure::message::Message;
use latlab_measure::session::{Accel, Limit, Session};
use latlab_part::failure::{Failure, FailureKind, Result, lock};
use latlab_sys::file;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Mutex;

/// The requested accelerator, else KVM if the kernel of `target` can measure with it.
pub fn choose(target: &str, session: &mut Session<'_>) -> Result<Accel> {
    if session.accel == Some(Accel::Tcg) {
        return Ok(Accel::Tcg);
    }
    match (refusal(target, session)?, session.accel) {
        (None, _) => Ok(Accel::Kvm),
        (Some(_), None) => Ok(Accel::Tcg),
        (Some(why), Some(_)) => Err(Failure::unsupported(format!(
            "{target}: KVM does not run this guest here ({why}): omit --accel to let QEMU translate"
        ))),
    }
}

/// Why KVM does not run this guest; none where it does.
fn refusal(target: &str, session: &mut Session<'_>) -> Result<Option<String>> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/kvm") {
        return Ok(Some(format!("/dev/kvm: {error}")));
    }
    let kernel = prepare::kernel(target, session)?.1;
    if !kernel.arch.is_host() {
        return Ok(Some(format!("its kernel is for {}", kernel.arch.title)));
    }
    tested(target, kernel, session)
}

/// Why a kernel of this machine's architecture does not boot with KVM, or its timers wake no task.
///
/// A kernel that passes proves KVM for all kernels until this machine boots again. A kernel that
/// fails proves nothing about others: it may be the kernel's fault. A test that did not finish is
/// remembered in this process only: the host may have been busy, or KVM in use.
fn tested(target: &str, kernel: Kernel, session: &mut Session<'_>) -> Result<Option<String>> {
    /// The reasons, by digest of the kernel.
    static REFUSED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let digest = kernel.digest.clone();
    if let Some(why) = lock(&REFUSED).get(&digest) {
        return Ok(Some(why.clone()));
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let path = kernel::cache()?.join("kvm");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let tested = if let Some(known) = Tested::read(&text, &boot, &digest) {
        known
    } else {
        let tested = test(target, kernel, session)?;
        if let Some(text) = tested.text(&boot, &digest) {
            // Without the file the next run tests again.
            let _ = file::write_atomically(&path, text.as_bytes());
        }
        tested
    };
    let refusal = tested.refusal();
    if let Some(why) = &refusal {
        lock(&REFUSED).insert(digest, why.clone());
        if session.accel.is_none() {
            let instead = "QEMU translates; --accel tcg omits the test";
            session.progress.note(&format!("{target}: KVM failed its test ({why}): {instead}"));
        }
    }
    Ok(refusal)
}

/// The result of a test boot with KVM.
#[derive(Debug, PartialEq, Eq)]
enum Tested {
    Works,
    /// The guest refused, for this reason.
    Refuses(String),
    /// The guest did not finish, for this reason. It may do so another time.
    Unfinished(String),
}

impl Tested {
    /// Reads the kept result of a test since this boot of the machine. None if it does not apply to
    /// the kernel with this digest.
    fn read(text: &str, boot: &str, digest: &str) -> Option<Tested> {
        let answer = text.strip_prefix(boot)?;
        if answer == "works" {
            return Some(Tested::Works);
        }
        let why = answer.strip_prefix("refuses ")?.strip_prefix(digest)?.strip_prefix(' ')?;
        Some(Tested::Refuses(why.to_owned()))
    }

    /// The text to keep; none for a result that may be another one the next time.
    fn text(&self, boot: &str, digest: &str) -> Option<String> {
        match self {
            Tested::Works => Some(format!("{boot}works")),
            Tested::Refuses(why) => Some(format!("{boot}refuses {digest} {why}")),
            Tested::Unfinished(_) => None,
        }
    }

    /// Why KVM is not used; none where it works.
    fn refusal(self) -> Option<String> {
        match self {
            Tested::Works => None,
            Tested::Refuses(why) | Tested::Unfinished(why) => Some(why),
        }
    }
}

fn test(target: &str, kernel: Kernel, session: &mut Session<'_>) -> Result<Tested> {
    session.watch.note("testing KVM");
    let words = ["--", PROGRAM, "run", "cyclic", "--count", "100"].map(str::to_owned).to_vec();
    let job = Job::Exec { words, folder: "/".into(), variables: Variables::new() };
    let limit = session.limit.replace(Limit::Usual(Nanos::from_secs(20)));
    let tried = ask(Cell::plain(target, kernel, GuestTime::Wall(Accel::Kvm), job), session);
    session.limit = limit;
    match tried {
        Ok(Message::Exited(0)) => Ok(Tested::Works),
        Ok(Message::Exited(code)) => {
            Ok(Tested::Refuses(format!("a run in its test guest ended with {code}")))
        }
        Ok(_) => Ok(Tested::Refuses("its test guest sent another answer".to_owned())),
        Err(failure) if failure.kind == FailureKind::Failed && !session.ended => {
            Ok(Tested::Unfinished(reason(target, &failure.text)))
        }
        Err(failure) => Err(failure),
    }
}

/// The reason in the failure of a guest, without the guest's name, its console, and the option for
/// the limit: the test's limit is fixed.
fn reason(target: &str, why: &str) -> String {
    let why = why.strip_prefix(target).map_or(why, |why| why.trim_start_matches(": "));
    why.split([';', '\n']).next().unwrap_or(why).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_result_is_that_of_this_boot_and_this_kernel() {
        let refuses = || Tested::Refuses("it ended with 2".to_owned());
        let text = |tested: Tested| tested.text("boot-1\n", "abc");
        let [works, other] = [Tested::Works, refuses()].map(|tested| text(tested).unwrap());
        assert_eq!(text(Tested::Unfinished("it hung".to_owned())), None);
        assert_eq!(Tested::read(&works, "boot-1\n", "abd"), Some(Tested::Works));
        assert_eq!(Tested::read(&works, "boot-2\n", "abc"), None);
        assert_eq!(Tested::read(&other, "boot-1\n", "abc"), Some(refuses()));
        assert_eq!(Tested::read(&other, "boot-1\n", "abd"), None);
        assert_eq!(Tested::read(&other, "boot-2\n", "abc"), None);
    }

    #[test]
    fn reason_is_one_sentence_without_console() {
        let why = "vm:rt: the guest did not finish within 20 s; raise the limit with \
                   --limit TIME; the end of its console:\n  a\n  b";
        assert_eq!(reason("vm:rt", why), "the guest did not finish within 20 s");
        assert_eq!(reason("vm:rt", "QEMU is gone"), "QEMU is gone");
    }
}
