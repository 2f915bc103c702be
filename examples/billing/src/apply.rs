//! Commands from a file, one JSON object a line, applied in order.

mod lines;
mod outcome;
mod pipeline;
mod progress;
mod request;

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use sequor::Store;
use tokio::io::{AsyncBufRead, BufReader};

use crate::database::Bank;
use lines::Lines;
use pipeline::Pipeline;
use progress::Progress;

pub(crate) use outcome::Summary;

/// What `billing apply --help` says.
pub(crate) const ABOUT: &str = r#"Apply commands from a file, one JSON object a line

  {"tenant": "018f2f6e-0000-7000-8000-00000000000a", "key": "open-7", "command": "open",
   "payload": {"account": "acme", "owner": "Acme Travel", "limit_cents": 50000}}

(on one line each). Members:
  tenant   whose: a UUID, not the nil one
  key      names the intent: 1 to 255 visible ASCII characters; the same line again is replayed
  actor    who asks (optional)
  command  with its payload, all members of which are needed:
           open    {"account": text, "owner": text, "limit_cents": 1 to 1000000000}
           charge  {"account": text, "cents": whole number from 1}
           refund  {"account": text, "cents": whole number from 1}

Blank lines and lines that begin with # are skipped. Lines end with LF or CRLF, are UTF-8 and take
64 KiB at most. A bad line is named on stderr (line 17: ...) and does nothing; the good ones take
effect, in order for each account. Apply the file again after mending it, or after Ctrl-C: what
has taken effect is replayed.

Exit codes: 0 all lines took effect, now or before; 1 the file or the database cannot be used, the
message says how far it came; 2 some lines were bad, rejected, or failed."#;

/// Where commands come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

/// Applies every line of a source, and says what became of them.
///
/// # Errors
/// When the source cannot be read, or the database cannot be written. What took effect until then
/// stays, and is replayed when the source is applied again.
pub(crate) async fn apply<S: Store>(bank: &Bank<S>, source: &Source) -> anyhow::Result<Summary> {
    let (input, bytes) = source.open().await?;
    let mut lines = Lines::new(input);
    let mut pipeline = Pipeline::new(bank.clone(), Progress::new(bytes)?);
    let read = loop {
        if pipeline.is_stopped() {
            break Ok(());
        }
        tokio::select! {
            biased;
            line = lines.next() => match line {
                Ok(Some(line)) => pipeline.take(line).await,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            },
            // Nothing to read yet, as in a pipe: report what is done meanwhile.
            () = pipeline.settle_first(), if !pipeline.is_empty() => {}
        }
    };
    let summary = pipeline.finish().await?;
    read.with_context(|| format!("{source} cannot be read to its end ({summary})"))?;
    Ok(summary)
}

impl Source {
    /// Opens it; a file tells its size.
    async fn open(&self) -> anyhow::Result<(Box<dyn AsyncBufRead + Unpin>, Option<u64>)> {
        let Self::File(path) = self else {
            return Ok((Box::new(BufReader::new(tokio::io::stdin())), None));
        };
        let unreadable = || format!("{self} cannot be read");
        let file = tokio::fs::File::open(path).await.with_context(unreadable)?;
        let about = file.metadata().await.with_context(unreadable)?;
        if about.is_dir() {
            bail!("{self} is a folder; name a file of commands, or - for standard input");
        }
        let bytes = about.is_file().then_some(about.len());
        Ok((Box::new(BufReader::with_capacity(1 << 16, file)), bytes))
    }
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "-" { Self::Stdin } else { Self::File(text.into()) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
