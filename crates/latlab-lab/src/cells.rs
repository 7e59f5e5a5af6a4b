//! Carries out cells, a few guests at a time.

use super::answer::Answer;
use super::guest::Cell;
use super::pool::Pool;
use latlab_core::time::Nanos;
use latlab_measure::message::Message;
use latlab_measure::session::{Output, Session};
use latlab_part::failure::{Failure, Result};

/// Carries out one cell and returns its last message; its output is discarded.
pub(super) fn ask(cell: Cell, session: &mut Session<'_>) -> Result<Message> {
    let answer = carry_out_one(cell, session, &mut |_, _| Ok(()))?;
    if answer.last.is_answer() { Ok(answer.last) } else { Err(answer.unexpected()) }
}

/// Carries out one cell.
pub(super) fn carry_out_one(
    cell: Cell,
    session: &mut Session<'_>,
    output: &mut Output<'_>,
) -> Result<Answer> {
    carry_out(vec![Ok(cell)], session, output, &mut |_, _| ()).pop().expect("one cell, one answer")
}

/// Carries out cells, a few guests at a time. Returns their answers in the order of the cells.
/// `finished` gets each answer as soon as it is complete, with the index of its cell.
pub(super) fn carry_out(
    cells: Vec<Result<Cell>>,
    session: &mut Session<'_>,
    output: &mut Output<'_>,
    finished: &mut dyn FnMut(usize, &Answer),
) -> Vec<Result<Answer>> {
    let mut pool = Pool::new(cells.len());
    let mut waiting = cells.into_iter().enumerate();
    loop {
        while pool.running() < session.jobs.max(1) && !session.ended {
            let Some((index, cell)) = waiting.next() else { break };
            pool.start(index, cell, session);
        }
        if pool.poll(session) {
            session.watch.done(pool.answered(), pool.total());
        }
        pool.newly_answered().for_each(|(index, answer)| finished(index, answer));
        if let Err(failure) = forward(&mut pool, session, output) {
            return vec![Err(failure)];
        }
        if session.ended || pool.running() == 0 && waiting.len() == 0 {
            break;
        }
        if !pool.has_written() {
            session.watch.note(&pool.state());
        }
        session.pause(Nanos::from_millis(10));
    }
    session.watch.note("");
    let ended = || {
        let why = "ended before the guest had finished: nothing of it is kept";
        Failure::cut_short(why)
    };
    pool.into_answers().map(|answer| answer.unwrap_or_else(|| Err(ended()))).collect()
}

/// Forwards the output of programs; the progress line is cleared before.
fn forward(pool: &mut Pool, session: &mut Session<'_>, output: &mut Output<'_>) -> Result<()> {
    let written = pool.take_output();
    if !written.is_empty() {
        session.watch.note("");
    }
    written.iter().try_for_each(|(stream, bytes)| output(*stream, bytes))
}
