//! A film: how late its frames are shown, and how far picture and sound are apart.

use super::Probe;
use crate::failure::{Failure, Result, failed};
use crate::needs::Needs;
use crate::registry::About;
use crate::rig::{Lane, Partner, Rhythm, Rig, Scheduling, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::sink::{Published, Sink};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::sound::{Pcm, Written};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Plays a film and records when its frames are shown, and how far picture and sound are apart.
///
/// The player of Abeni et al. 2002, figures 5 to 8. On each CPU, one task decodes a frame, sleeps
/// until the sound has come to it, and shows it; another, of one priority more, gives the sound to
/// a device, period by period. The device plays 48 000 samples a second: samples that come too late
/// leave it silent (figures "underruns", "silence"), and the frames wait for it. device=clock is
/// made of the clock and takes samples from nobody else; device=alsa is the machine's first sound
/// card, which plays silence, to the film on the last of the CPUs. A guest gets the card without
/// ears, snd-dummy.
///
/// The first series is how late a frame was shown; the second by how much the time from one frame
/// to the next differs from what it should be, either way, and the third that time (figures 7 and
/// 8); the last two are by how much the sound was before the picture, or after it (figures 5 and
/// 6): one of them is 0. A frame that is shown when half of its time is over is late; one whose
/// time is over before it is decoded is dropped, and counted as missed.
///
/// Both tasks have real-time priorities: what is seen then is the kernel, not who else wants to
/// run. policy=other plays as ordinary programs do. That the sound preempts the decoder is meant,
/// and counted among the preemptions of a run.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Player {
    /// CPU time to decode a frame, in percent of the time that it is shown
    #[arg(long, default_value = "40%", value_parser = percent)]
    work: u32,
    /// Frames a second
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=240))]
    fps: u32,
    /// What the sound is given to
    #[arg(long, default_value = "clock")]
    device: Output,
    /// Samples that the device is given at once
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(16..=16384))]
    period: u32,
    /// Periods that the device's buffer holds
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=64))]
    periods: u32,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
enum Output {
    Clock,
    Alsa,
}

/// Reads a share in percent.
fn percent(text: &str) -> std::result::Result<u32, String> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(share @ 0..=90) => Ok(share),
        _ => Err(format!("{text} is not 0% to 90%")),
    }
}

const SPANS: [Span; 5] = [
    ("frame due", "frame shown"),
    ("frame time", "time between frames"),
    ("frame shown", "next frame shown"),
    ("picture", "sound ahead"),
    ("picture", "sound behind"),
];
const LATE: usize = 0;
const APART: usize = 1;
const BETWEEN: usize = 2;
const AHEAD: usize = 3;
const BEHIND: usize = 4;

/// Samples a second.
const RATE: u32 = 48_000;

impl Probe for Player {
    const ABOUT: About = About {
        name: "player",
        summary: "how late a film's frames are shown, and how far the sound is off",
    };

    fn needs(&self) -> Needs {
        match self.device {
            Output::Clock => Needs::default(),
            Output::Alsa => Needs { modules: ["snd-dummy"].into(), ..Needs::default() },
        }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        if self.scheduling.policy == "deadline" {
            let why = "player: a deadline task can't start another one: give policy=fifo, rr or \
                       other";
            return Err(Failure::Failed(why.to_owned()));
        }
        if self.scheduling.priority == 99 && self.scheduling.policy != "other" {
            let why = "player: priority=99 leaves none above it, which the sound is to have: use \
                       priority=98 or less";
            return Err(Failure::Failed(why.to_owned()));
        }
        self.card().map_err(|error| self.refused(&error))?;
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let cpus = rig.cpus().iter();
        let places = match self.device {
            Output::Clock => cpus.map(|cpu| CpuList::from_iter([cpu])).collect(),
            Output::Alsa => vec![cpus.last().into_iter().collect()],
        };
        let counts = Counts::default();
        let done = rig.on_each_of(
            &places,
            Self::ABOUT.name,
            &SPANS,
            Rhythm::Every(self.shown_at(1)),
            &self.scheduling,
            |lane| self.play(lane, &counts),
        );
        counts.show(rig);
        done
    }
}

impl Player {
    fn play(&self, lane: &mut Lane<'_>, counts: &Counts) -> io::Result<()> {
        let card = self.card()?;
        for _ in 0..self.periods {
            card.as_ref().map(Pcm::write).transpose()?;
        }
        let buffer = u64::from(self.period) * u64::from(self.periods);
        let sink = Sink::full(RATE.into(), buffer, clock::now());
        let heard = Published::default();
        heard.publish(sink.playing());
        lane.beside(
            self.scheduling.policy_at(1),
            |partner| self.sound(sink, card.as_ref(), &heard, partner, counts),
            |lane| {
                self.picture(&heard, lane, counts);
                Ok(())
            },
        )
    }

    /// The sound card, where it is one.
    fn card(&self) -> io::Result<Option<Pcm>> {
        match self.device {
            Output::Clock => Ok(None),
            Output::Alsa => Pcm::open(RATE, self.period, self.periods).map(Some),
        }
    }

    fn refused(&self, error: &io::Error) -> Failure {
        let unsupported = |why: String| Failure::Unsupported(format!("player: {why}"));
        match error.kind() {
            io::ErrorKind::NotFound => unsupported(
                "there is no sound card (/dev/snd): load one that needs no hardware (modprobe \
                 snd-dummy), or use device=clock"
                    .to_owned(),
            ),
            io::ErrorKind::PermissionDenied => unsupported(
                "the sound card (/dev/snd) is only for root and the group audio: join it, or use \
                 device=clock"
                    .to_owned(),
            ),
            io::ErrorKind::InvalidInput => unsupported(format!(
                "the sound card can't play {RATE} samples a second out of {} periods of {}: give \
                 other period= and periods=, or use device=clock",
                self.periods, self.period
            )),
            io::ErrorKind::ResourceBusy => Failure::Failed(
                "player: the sound card is in use by another program: end that, or use \
                 device=clock"
                    .to_owned(),
            ),
            _ => failed("player: the sound card", error),
        }
    }

    /// When a frame is to be shown, from the beginning of the film.
    fn shown_at(&self, frame: u64) -> Nanos {
        Nanos(frame * 1_000_000_000 / u64::from(self.fps))
    }

    /// How long the device plays a period.
    fn lasting(&self) -> Nanos {
        Nanos(u64::from(self.period) * 1_000_000_000 / u64::from(RATE))
    }

    /// CPU time to decode a frame.
    fn decoding(&self) -> Nanos {
        Nanos(self.shown_at(1).0 * u64::from(self.work) / 100)
    }

    /// Gives the device its samples, each time that there is room.
    fn sound(
        &self,
        mut sink: Sink,
        card: Option<&Pcm>,
        heard: &Published,
        partner: &Partner<'_>,
        counts: &Counts,
    ) -> io::Result<()> {
        while partner.running() {
            let Some(silent) = self.feed(&mut sink, card)? else { continue };
            heard.publish(sink.playing());
            if silent > Nanos(0) && counts.counting.load(Relaxed) {
                counts.underruns.fetch_add(1, Relaxed);
                counts.silence.fetch_add(silent.0, Relaxed);
            }
        }
        Ok(())
    }

    /// Waits for room and fills it. How long the device was silent before; none if a signal ended
    /// the wait.
    fn feed(&self, sink: &mut Sink, card: Option<&Pcm>) -> io::Result<Option<Nanos>> {
        let samples = u64::from(self.period);
        let Some(card) = card else {
            let in_time = clock::sleep_until(sink.room_for(samples));
            return Ok(in_time.then(|| sink.write(samples, clock::now())));
        };
        let written = card.write()?;
        if written == Written::Interrupted {
            return Ok(None);
        }
        let behind = sink.written(samples, card.queued()?, clock::now());
        // A card that was not served for longer than its buffer lasts does not know how often it
        // has gone round.
        let silent = written == Written::TooLate || behind > self.lasting();
        Ok(Some(if silent { behind } else { Nanos(0) }))
    }

    /// Shows one frame after another, each when the sound has come to it.
    fn picture(&self, heard: &Published, lane: &mut Lane<'_>, counts: &Counts) {
        let each = self.shown_at(1);
        let mut before = heard.get().origin;
        lane.begin_at(before);
        let mut frame = 1;
        while lane.running() {
            let behind = clock::now() - (heard.get().origin + self.shown_at(frame));
            let dropped = behind.0 / each.0;
            frame += dropped;
            decode(self.decoding());
            let due = heard.get().origin + self.shown_at(frame);
            while !clock::sleep_until(due) {
                if !lane.running() {
                    return;
                }
            }
            let shown = clock::now();
            let sound = heard.get().position(shown);
            lane.sample(LATE, shown, shown - due);
            lane.sample(APART, shown, Nanos((shown - before).0.abs_diff(each.0)));
            lane.sample(BETWEEN, shown, shown - before);
            lane.sample(AHEAD, shown, sound - self.shown_at(frame));
            lane.sample(BEHIND, shown, self.shown_at(frame) - sound);
            lane.pass(shown, dropped);
            counts.counting.store(lane.counts(), Relaxed);
            if lane.counts() {
                counts.shown.fetch_add(1, Relaxed);
                counts.late.fetch_add(u64::from((shown - due).0 > each.0 / 2), Relaxed);
                counts.dropped.fetch_add(dropped, Relaxed);
            }
            before = shown;
            frame += 1;
        }
    }
}

/// Computes until so much of the thread's own time is used up, whoever preempts it.
fn decode(work: Nanos) {
    // To ask for that time is a system call: there are to be few of them.
    const PIECE: Nanos = Nanos::from_micros(50);
    let end = clock::of_thread() + work;
    loop {
        let left = end - clock::of_thread();
        if left == Nanos(0) {
            return;
        }
        clock::spin_until(clock::now() + left.min(PIECE));
    }
}

/// What is no distribution, of all CPUs together.
#[derive(Default)]
struct Counts {
    /// Whether what happens now counts.
    counting: AtomicBool,
    shown: AtomicU64,
    late: AtomicU64,
    dropped: AtomicU64,
    underruns: AtomicU64,
    silence: AtomicU64,
}

impl Counts {
    #[expect(clippy::cast_precision_loss, reason = "nobody plays 2^52 frames")]
    fn show(&self, rig: &mut Rig<'_>) {
        let figures = [
            ("frames shown", &self.shown, "frames"),
            ("frames late", &self.late, "frames"),
            ("frames dropped", &self.dropped, "frames"),
            ("underruns", &self.underruns, "underruns"),
            ("silence", &self.silence, "ns"),
        ];
        if self.shown.load(Relaxed) == 0 {
            return;
        }
        for (name, value, unit) in figures {
            rig.figure(Player::ABOUT.name, name, value.load(Relaxed) as f64, unit);
        }
    }
}
