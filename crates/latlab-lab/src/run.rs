//! Plans and programs in guests.

use super::answer::Answer;
use super::cache;
use super::cells::{carry_out, carry_out_one};
use super::guest::{Cell, GuestTime, Program};
use super::prepare;
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::message::Message;
use latlab_measure::session::{Output, Session};
use latlab_part::failure::Result;
use latlab_part::progress::Stream;

/// Carries out each plan in a guest of its own, whose time `time_of` chooses. The outcomes do not
/// depend on their order.
pub fn run(
    plans: &[Prepared],
    time_of: impl Fn(&Prepared, &mut Session<'_>) -> Result<GuestTime>,
    session: &mut Session<'_>,
) -> Vec<Result<Outcome>> {
    let mut prepared = |plan| prepare::plan(plan, time_of(plan, session)?, session);
    let cells: Vec<Result<Cell>> = plans.iter().map(&mut prepared).collect();
    let outcome = |index: usize, answer: Answer| answer.outcome(&plans[index]);
    let mut keep = session.keep.take();
    let mut finished = |index, answer: &Answer| {
        if let (Some(keep), Ok(outcome)) = (&mut keep, outcome(index, answer.clone())) {
            keep(index, &outcome);
        }
    };
    let answers = carry_out(cells, session, &mut |_, _| Ok(()), &mut finished);
    let answers = answers.into_iter().enumerate();
    answers.map(|(index, answer)| outcome(index, answer?)).collect()
}

/// The fingerprint that a record of this plan would have now.
pub fn fingerprint(plan: &Prepared, time: GuestTime, session: &mut Session<'_>) -> Result<String> {
    let cell = prepare::plan(plan, time, session)?;
    cache::fingerprint(&cell, &cell.boot()?)
}

/// Starts a program in a guest. `output` receives its output. Returns its exit code.
pub fn exec(
    target: &str,
    program: &Program,
    time: GuestTime,
    session: &mut Session<'_>,
    output: &mut Output<'_>,
) -> Result<u8> {
    let cell = prepare::program(target, program, time, session)?;
    exit_code(cell, session, output)
}

/// Runs latlab in a guest with these words. `output` receives its output. Returns its exit code.
pub fn command(
    target: &str,
    words: Vec<String>,
    time: GuestTime,
    session: &mut Session<'_>,
    output: &mut Output<'_>,
) -> Result<u8> {
    exit_code(prepare::command(target, words, time, session)?, session, output)
}

fn exit_code(cell: Cell, session: &mut Session<'_>, output: &mut Output<'_>) -> Result<u8> {
    let answer = carry_out_one(cell, session, output)?;
    for line in &answer.complaints {
        output(Stream::Stderr, format!("latlab: the guest's kernel: {line}\n").as_bytes())?;
    }
    match answer.last {
        Message::Exited(code) => Ok(code),
        _ => Err(answer.unexpected()),
    }
}
