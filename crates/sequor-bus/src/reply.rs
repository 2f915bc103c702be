//! What travels back through the chain.

use std::sync::Arc;

use sequor_core::{Disposition, Epoch, Error, Receipt, Record};
use serde::de::DeserializeOwned;

/// What travels back through the chain: the record of the command that took effect, and whether
/// that was now.
#[derive(Clone, Debug)]
pub struct Reply {
    disposition: Disposition,
    record: Arc<Record>,
    /// Whether the receipt may carry the output.
    with_output: bool,
}

impl Reply {
    /// It took effect now.
    pub(crate) fn executed(record: Arc<Record>) -> Self {
        Self { disposition: Disposition::Executed, record, with_output: true }
    }

    /// The key was known; whether the record answers this request, and with its output, is still
    /// to be judged.
    pub(crate) fn replayed(record: Arc<Record>) -> Self {
        Self { disposition: Disposition::Replayed, record, with_output: false }
    }

    /// Lets the receipt carry the output.
    pub(crate) fn with_output(self) -> Self {
        Self { with_output: true, ..self }
    }

    /// Whether it took effect now.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        self.disposition
    }

    /// The command that took effect. In a shared transaction its position is not known before the
    /// end.
    #[must_use]
    pub fn record(&self) -> &Arc<Record> {
        &self.record
    }

    /// The typed receipt.
    pub(crate) fn receipt<O: DeserializeOwned, R>(
        self,
        epoch: Epoch,
    ) -> Result<Receipt<O>, Error<R>> {
        let record = &*self.record;
        let output = self.with_output.then(|| record.output.read()).transpose();
        let output = output.map_err(|reason| Error::Corrupt {
            what: format!("output of command {}: {reason}", record.command_id),
        })?;
        Ok(Receipt {
            disposition: self.disposition,
            command_id: record.command_id,
            command_name: record.command_name.clone(),
            recorded_at: record.recorded_at,
            streams: record.streams.clone(),
            position: record.position,
            epoch,
            output,
        })
    }
}
