//! Kernel objects that two components compare: kinds of semaphores and of message queues.

use crate::rig::Span;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use latlab_part::failure::{Failure, Result};
use latlab_sys::{namespace, thread};
use std::io;

/// Kind of object, as the parameter `kind` selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ObjectKind {
    All,
    SystemV,
    Posix,
    Futex,
    Pipe,
    Socket,
}

/// One kind of object that a component measures, with the names of its series and its figure.
pub(super) struct Object<T> {
    pub(super) kind: ObjectKind,
    pub(super) span: Span,
    pub(super) make: fn() -> io::Result<T>,
    /// Name of the figure: the cost of the object's operations without a waiting task.
    pub(super) uncontended: &'static str,
    /// Whether it is created in an IPC namespace of its own, so that it can't outlive a killed run.
    pub(super) in_namespace: bool,
}

/// Returns a parser of `kind` for a component that measures these objects.
pub(super) fn kind_parser<T>(
    objects: &'static [Object<T>],
) -> impl TypedValueParser<Value = ObjectKind> {
    let kinds = [ObjectKind::All].into_iter().chain(objects.iter().map(|object| object.kind));
    let names = kinds.filter_map(|kind| kind.to_possible_value());
    PossibleValuesParser::new(names).try_map(|name| ObjectKind::from_str(&name, false))
}

/// Returns the objects of this kind; fails if there are none.
pub(super) fn select<T>(
    probe: &str,
    objects: &'static [Object<T>],
    kind: ObjectKind,
) -> Result<Vec<&'static Object<T>>> {
    let is_selected = |object: &&Object<T>| kind == ObjectKind::All || kind == object.kind;
    let selected: Vec<_> = objects.iter().filter(is_selected).collect();
    if selected.is_empty() {
        return Err(Failure::failed(format!("{probe}: there is no such kind: use kind=all")));
    }
    Ok(selected)
}

/// Enters a new IPC namespace, if any of these objects needs it.
pub(super) fn enter_namespace<T>(objects: &[&Object<T>]) -> io::Result<()> {
    if objects.iter().any(|object| object.in_namespace) { namespace::unshare_ipc() } else { Ok(()) }
}

/// Fails if the objects that need an IPC namespace of their own can't be created in one. `instead`
/// names the kinds that need none.
pub(super) fn check<T>(probe: &str, instead: &str, objects: &[&Object<T>]) -> Result<()> {
    if !objects.iter().any(|object| object.in_namespace) {
        return Ok(());
    }
    let refused = |why: &str, error: io::Error, remedy: &str| {
        let text = format!("{probe}: {why} ({error}): {remedy}, or use {instead}");
        Err(Failure::unsupported(text))
    };
    // The namespace belongs to the thread and ends with it. Nothing is created outside of it.
    let make_all = || objects.iter().try_for_each(|object| (object.make)().map(drop));
    match thread::on_its_own(|| namespace::unshare_ipc().map(|()| make_all())) {
        Err(error) => refused(
            "its objects need an IPC namespace of their own, so that none outlives a killed run, \
             and the kernel refuses to create one",
            error,
            "run it as root (CAP_SYS_ADMIN)",
        ),
        Ok(Err(error)) => refused(
            "its objects can't be created here",
            error,
            "use a kernel with CONFIG_SYSVIPC and CONFIG_POSIX_MQUEUE",
        ),
        Ok(Ok(())) => Ok(()),
    }
}
