//! The sound of a film: a sound card or a simulated device, and the samples queued in it.

use super::SoundDevice;
use latlab_core::sink::{Playing, Sink};
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, failed};
use latlab_sys::clock;
use latlab_sys::sound::{Pcm, Written};
use std::io;

/// Samples per second.
const RATE: u32 = 48_000;

/// Buffer of a sound device: periods of samples.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pub(super) device: SoundDevice,
    /// Samples in a period.
    pub(super) period: u32,
    pub(super) periods: u32,
}

impl Buffer {
    /// Opens the sound card; returns none for the simulated device.
    pub(super) fn open_card(self) -> io::Result<Option<Pcm>> {
        match self.device {
            SoundDevice::Clock => Ok(None),
            SoundDevice::Alsa => Pcm::open(RATE, self.period, self.periods).map(Some),
        }
    }

    /// Returns why [`Buffer::open_card`] failed.
    pub(super) fn not_opened(self, error: &io::Error) -> Failure {
        let unsupported = |why: String| Failure::unsupported(format!("player: {why}"));
        match error.kind() {
            io::ErrorKind::NotFound => unsupported(
                "there is no sound card (/dev/snd): load the driver of one without hardware \
                 (modprobe snd-dummy), or use device=clock"
                    .to_owned(),
            ),
            io::ErrorKind::PermissionDenied => unsupported(
                "the sound card (/dev/snd) is accessible to root and the group audio only: join \
                 the group, or use device=clock"
                    .to_owned(),
            ),
            io::ErrorKind::InvalidInput => unsupported(format!(
                "the sound card can't play {RATE} samples per second from {} periods of {}: use \
                 other values of period= and periods=, or device=clock",
                self.periods, self.period
            )),
            io::ErrorKind::ResourceBusy => Failure::failed(
                "player: the sound card is in use by another program: stop it, or use device=clock",
            ),
            _ => failed("player: the sound card", error),
        }
    }

    /// Returns how long the device plays one period.
    fn period_time(self) -> Nanos {
        Nanos(u64::from(self.period) * 1_000_000_000 / u64::from(RATE))
    }
}

/// The sound of one film. It plays as soon as it exists.
pub(super) struct Sound {
    buffer: Buffer,
    card: Option<Pcm>,
    sink: Sink,
}

impl Sound {
    /// Opens the device and fills its buffer.
    pub(super) fn start(buffer: Buffer) -> io::Result<Sound> {
        let card = buffer.open_card()?;
        for _ in 0..buffer.periods {
            card.as_ref().map(Pcm::write).transpose()?;
        }
        let capacity = u64::from(buffer.period) * u64::from(buffer.periods);
        let sink = Sink::full(RATE.into(), capacity, clock::now());
        Ok(Sound { buffer, card, sink })
    }

    /// Returns what the device plays until the next write.
    pub(super) fn playing(&self) -> Playing {
        self.sink.playing()
    }

    /// Waits until there is room for a period, and writes it. Returns how long the device was
    /// silent before; none if a signal ended the wait.
    pub(super) fn write_period(&mut self) -> io::Result<Option<Nanos>> {
        let (sink, samples) = (&mut self.sink, u64::from(self.buffer.period));
        let Some(card) = &self.card else {
            let slept = clock::wait_until(sink.room_for(samples))?;
            return Ok(slept.then(|| sink.write(samples, clock::now())));
        };
        let written = card.write()?;
        if written == Written::Interrupted {
            return Ok(None);
        }
        let behind = sink.written(samples, card.queued()?, clock::now());
        // A card that was not served for longer than its whole buffer does not report how many
        // times its position has wrapped.
        let silent = written == Written::TooLate || behind > self.buffer.period_time();
        Ok(Some(if silent { behind } else { Nanos(0) }))
    }
}
