//! Where the story is written: numbered steps, and what came back for each.

use std::fmt;
use std::io::Write;

use sequor::{CommandId, ErrReplay, Error, Json, Receipt, Timestamp};
use serde::Serialize;

/// A page that fills up line by line.
pub(super) struct Page<'p> {
    pub(super) out: &'p mut dyn Write,
    /// When this run began, to tell what is older.
    began: Timestamp,
    step: u32,
    /// Steps that were answered by what an earlier run did.
    survived: u32,
}

impl<'p> Page<'p> {
    pub(super) fn new(out: &'p mut dyn Write, began: Timestamp) -> Self {
        Self { out, began, step: 0, survived: 0 }
    }

    /// Steps that were answered by what an earlier run did.
    pub(super) fn survived(&self) -> u32 {
        self.survived
    }

    /// A line of its own.
    pub(super) fn line(&mut self, text: fmt::Arguments<'_>) -> anyhow::Result<()> {
        Ok(writeln!(self.out, "{text}")?)
    }

    /// What is done next.
    pub(super) fn step(&mut self, text: fmt::Arguments<'_>) -> anyhow::Result<()> {
        self.step += 1;
        Ok(writeln!(self.out, "\n{:>2}. {text}", self.step)?)
    }

    /// Something about what came back.
    pub(super) fn note(&mut self, text: fmt::Arguments<'_>) -> anyhow::Result<()> {
        Ok(writeln!(self.out, "    {text}")?)
    }

    /// What came back: a receipt or an error, both are part of the story.
    pub(super) fn answer<O: Serialize, R: std::error::Error + Send + Sync + 'static>(
        &mut self,
        answer: Result<Receipt<O>, Error<R>>,
    ) -> anyhow::Result<()> {
        match answer {
            Ok(receipt) => self.receipt(&receipt),
            Err(error) => self.error(error),
        }
    }

    /// What took effect, now or before.
    pub(super) fn receipt<O: Serialize>(&mut self, receipt: &Receipt<O>) -> anyhow::Result<()> {
        let disposition = format!("{:?}", receipt.disposition);
        write!(self.out, "    {disposition:<10} {}", End(receipt.command_id))?;
        for written in &receipt.streams {
            write!(self.out, "  {} v{}", written.stream, written.version)?;
        }
        if let Some(position) = receipt.position {
            write!(self.out, "  position {position}")?;
        }
        match Json::of(&receipt.output)?.as_str() {
            "null" => writeln!(self.out)?,
            output => writeln!(self.out, "  {output}")?,
        }
        if receipt.recorded_at < self.began {
            self.survived += 1;
            self.note(format_args!(
                "           known since an earlier run: {}",
                receipt.recorded_at
            ))?;
        }
        Ok(())
    }

    /// What did not take effect now, and why. Troubles of the store end the story.
    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else there is, it is trouble")]
    fn error<R: std::error::Error + Send + Sync + 'static>(
        &mut self,
        error: Error<R>,
    ) -> anyhow::Result<()> {
        let (name, text) = match error {
            Error::Rejected(rejection) => ("Rejected", rejection.to_string()),
            Error::Replay(ErrReplay { command_id, command_name, recorded_at }) => {
                let id = End(command_id);
                ("ErrReplay", format!("{id}  this `{command_name}` took effect at {recorded_at}"))
            }
            Error::KeyReused { command_id, command_name } => {
                let id = End(command_id);
                (
                    "KeyReused",
                    format!("{id}  the key names this `{command_name}`; it stays as it is"),
                )
            }
            Error::Conflict { stream, expected, actual } => {
                ("Conflict", format!("{stream} is at v{actual}, not v{expected}"))
            }
            trouble => return Err(trouble.into()),
        };
        self.note(format_args!("{name:<10} {text}"))
    }
}

/// The end of a command's id: the beginning of a UUIDv7 is its time, and much the same in all.
struct End(CommandId);

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0.to_string();
        write!(f, "…{}", id.get(28..).unwrap_or(&id))
    }
}
