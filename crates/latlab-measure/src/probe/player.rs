//! Playback of a film: lateness of its frames, and the offset between picture and sound.

mod sound;

use super::Probe;
use crate::rig::{Pacing, Rig, Sampler, Scheduling, SecondTask, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::sink::Published;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use sound::{Buffer, Sound};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Measures the time from when a frame of a film is due until it is shown.
///
/// This is the player of Abeni et al. 2002, figures 5 to 8. On each CPU, one task decodes a frame,
/// sleeps until the sound has reached it, and shows it. A second task, whose priority is higher by
/// one, writes the sound to a device, period by period. The device plays 48 000 samples per second:
/// samples that come too late leave it silent (figures "underruns", "silence"), and the frames wait
/// for it. device=clock is simulated with the clock, one for each film; device=alsa is the
/// machine's first sound card, which plays silence, for the film on the last of the CPUs. In a
/// guest the card is snd-dummy, which needs no hardware.
///
/// The first series is how late a frame was shown. The second is the absolute difference between
/// the time from one frame to the next and the nominal frame time, and the third is that time
/// (figures 7 and 8). The last two are how far the sound was ahead of the picture, or behind it
/// (figures 5 and 6): one of them is 0. A frame shown after half of its frame time is late; one
/// whose frame time is over before it is decoded is dropped, and counted as missed.
///
/// Both tasks have real-time priorities, so that the latency is the kernel's and not that of
/// competing tasks. policy=other plays as ordinary programs do. The sound task is meant to preempt
/// the decoder, which is counted among the preemptions of a run.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Player {
    /// CPU time to decode a frame, in percent of the frame time
    #[arg(long, default_value = "40%", value_parser = percent)]
    work: u32,
    /// Frames per second
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=240))]
    fps: u32,
    /// Device that plays the sound
    #[arg(long, default_value = "clock")]
    device: SoundDevice,
    /// Samples that are written to the device at once
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(16..=16384))]
    period: u32,
    /// Periods in the device's buffer
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
enum SoundDevice {
    Clock,
    Alsa,
}

/// Parses a share in percent.
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
const DIFFERENCE: usize = 1;
const BETWEEN: usize = 2;
const AHEAD: usize = 3;
const BEHIND: usize = 4;

impl Describe for Player {
    const ABOUT: About = About {
        name: "player",
        summary: "lateness of video frames, and skew between audio and video",
    };
}

impl Probe for Player {
    fn needs(&self) -> Needs {
        match self.device {
            SoundDevice::Clock => Needs::default(),
            SoundDevice::Alsa => Needs { modules: ["snd-dummy"].into(), ..Needs::default() },
        }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        if self.scheduling.policy == "deadline" {
            let why = "player: a deadline task can't start a second task: use policy=fifo, rr or \
                       other";
            return Err(Failure::failed(why));
        }
        if self.scheduling.priority == 99 && self.scheduling.policy != "other" {
            let why = "player: the sound task needs a priority above priority=99: use priority=98 \
                       or less";
            return Err(Failure::failed(why));
        }
        let buffer = self.buffer();
        buffer.open_card().map_err(|error| buffer.not_opened(&error))?;
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let cpus = rig.cpus().iter();
        let cpu_sets = match self.device {
            SoundDevice::Clock => cpus.map(|cpu| CpuList::from_iter([cpu])).collect(),
            SoundDevice::Alsa => vec![cpus.last().into_iter().collect()],
        };
        let counts = PlaybackCounts::default();
        let done = rig.on_cpu_sets(
            &cpu_sets,
            Self::ABOUT.name,
            &SPANS,
            Pacing::Periodic(self.shown_at(1)),
            &self.scheduling,
            |sampler| self.play(sampler, &counts),
        );
        counts.add_to(rig);
        done
    }
}

impl Player {
    fn buffer(&self) -> Buffer {
        Buffer { device: self.device, period: self.period, periods: self.periods }
    }

    fn play(&self, sampler: &mut Sampler<'_>, counts: &PlaybackCounts) -> io::Result<()> {
        let mut sound = Sound::start(self.buffer())?;
        let heard = Published::default();
        heard.publish(sound.playing());
        sampler.with_second_task(
            self.scheduling.policy_with_offset(1),
            |task| play_sound(&mut sound, &heard, task, counts),
            |sampler| self.show_frames(&heard, sampler, counts),
        )
    }

    /// Returns when a frame is due, from the start of the film.
    fn shown_at(&self, frame: u64) -> Nanos {
        Nanos(frame * 1_000_000_000 / u64::from(self.fps))
    }

    /// Returns the CPU time to decode a frame.
    fn decoding(&self) -> Nanos {
        Nanos(self.shown_at(1).0 * u64::from(self.work) / 100)
    }

    /// Decodes and shows one frame after another, each when the sound has reached it.
    fn show_frames(
        &self,
        heard: &Published,
        sampler: &mut Sampler<'_>,
        counts: &PlaybackCounts,
    ) -> io::Result<()> {
        let frame_time = self.shown_at(1);
        let mut before = heard.get().origin;
        sampler.start_at(before);
        let mut frame = 1;
        while sampler.running() {
            let behind = clock::now() - (heard.get().origin + self.shown_at(frame));
            let dropped = behind.0 / frame_time.0;
            frame += dropped;
            decode(self.decoding());
            let due = heard.get().origin + self.shown_at(frame);
            while !clock::wait_until(due)? {
                if !sampler.running() {
                    return Ok(());
                }
            }
            let shown = clock::now();
            let sound = heard.get().position(shown);
            sampler.record(LATE, shown, shown - due);
            sampler.record(DIFFERENCE, shown, Nanos((shown - before).0.abs_diff(frame_time.0)));
            sampler.record(BETWEEN, shown, shown - before);
            sampler.record(AHEAD, shown, sound - self.shown_at(frame));
            sampler.record(BEHIND, shown, self.shown_at(frame) - sound);
            sampler.advance(shown, dropped);
            counts.counting.store(sampler.is_counting(), Relaxed);
            if sampler.is_counting() {
                counts.shown.fetch_add(1, Relaxed);
                counts.late.fetch_add(u64::from((shown - due).0 > frame_time.0 / 2), Relaxed);
                counts.dropped.fetch_add(dropped, Relaxed);
            }
            before = shown;
            frame += 1;
        }
        Ok(())
    }
}

/// Body of the sound task: writes a period whenever there is room for it.
fn play_sound(
    sound: &mut Sound,
    heard: &Published,
    task: &SecondTask<'_>,
    counts: &PlaybackCounts,
) -> io::Result<()> {
    while task.running() {
        let Some(silent) = sound.write_period()? else { continue };
        heard.publish(sound.playing());
        if silent > Nanos(0) && counts.counting.load(Relaxed) {
            counts.underruns.fetch_add(1, Relaxed);
            counts.silence.fetch_add(silent.0, Relaxed);
        }
    }
    Ok(())
}

/// Computes until the thread has used this much CPU time, however often it is preempted.
fn decode(work: Nanos) {
    // Reading the thread's CPU time is a system call, so it is not done too often.
    const SPIN: Nanos = Nanos::from_micros(50);
    let end = clock::thread_cpu_time() + work;
    loop {
        let left = end - clock::thread_cpu_time();
        if left == Nanos(0) {
            return;
        }
        clock::spin_until(clock::now() + left.min(SPIN));
    }
}

/// Counts that become figures, of all CPUs together.
#[derive(Default)]
struct PlaybackCounts {
    /// Whether the warm-up is over.
    counting: AtomicBool,
    shown: AtomicU64,
    late: AtomicU64,
    dropped: AtomicU64,
    underruns: AtomicU64,
    silence: AtomicU64,
}

impl PlaybackCounts {
    #[expect(clippy::cast_precision_loss, reason = "nobody plays 2^52 frames")]
    fn add_to(&self, rig: &mut Rig<'_>) {
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
            rig.add_figure(Player::ABOUT.name, name, value.load(Relaxed) as f64, unit);
        }
    }
}
