//! Process creation load: children are forked and waited for.

use super::{Load, LoadContext, Place};
use latlab_part::part::{About, Describe};
use std::io;

/// Forks a child that exits at once and waits for it, repeatedly, one worker on each CPU.
///
/// The fork load of Abeni et al. 2002 (section 5.2). Counts processes.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Fork {
    /// Children at a time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=512))]
    children: u32,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Fork {
    const ABOUT: About = About { name: "fork", summary: "fork and wait for short-lived processes" };
}

impl Load for Fork {
    fn unit(&self) -> &'static str {
        "processes"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        context.ready();
        while context.running() {
            let forked = (0..self.children).map(|_| context.single().fork(|| {}));
            for child in forked.collect::<io::Result<Vec<_>>>()? {
                child.wait()?;
                context.done(1);
            }
        }
        Ok(())
    }
}
