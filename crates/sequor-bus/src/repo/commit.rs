//! [`Repo::commit`]: the one place where anything becomes true.

use std::sync::Arc;

use sequor_core::commit::{CommitDraft, StreamDraft};
use sequor_core::ports::{Committed, Store, Transaction};
use sequor_core::{Commit, Invalid, Json, Record, Version};

use super::{Backing, Ground, Repo};
use crate::envelope::Envelope;
use crate::error::Halt;

impl<S: Store> Repo<S> {
    /// Makes a command true: alone, in one step, or as part of the open transaction, which becomes
    /// true with [`Repo::finish`]; until then the record has no position.
    pub(crate) async fn commit(
        &mut self,
        envelope: &Envelope,
        output: Json,
    ) -> Result<Arc<Record>, Halt> {
        let commit = self.draft(envelope, output)?;
        let next: Vec<Version> = commit.streams.iter().map(|write| write.next).collect();
        let Backing { store, projections, .. } = &*self.backing;
        let record = match &mut self.ground {
            Ground::Speculative { .. } => {
                let committed = store.commit(commit, projections).await;
                match committed.inspect_err(|error| self.backing.forget_if_behind(error))? {
                    Committed::Fresh(record) => record,
                    Committed::Known(record) => return Err(Halt::Known(Box::new(record))),
                }
            }
            Ground::Transaction(transaction) => {
                let record = commit.record(None);
                let written = transaction.write(commit, projections).await;
                written.inspect_err(|error| self.backing.forget_if_behind(error))?;
                record
            }
        };
        self.entities.written(next);
        if let Ground::Speculative { .. } = self.ground {
            self.remember();
        }
        Ok(Arc::new(record))
    }

    /// Makes everything true that was written into the open transaction.
    pub(crate) async fn finish(mut self) -> Result<Vec<Record>, Halt> {
        match std::mem::replace(&mut self.ground, Ground::SPENT) {
            Ground::Speculative { .. } => Ok(Vec::new()),
            Ground::Transaction(transaction) => {
                let records = transaction.commit().await?;
                self.remember();
                Ok(records)
            }
        }
    }

    fn draft(&mut self, envelope: &Envelope, output: Json) -> Result<Commit, Invalid> {
        let (indices, streams): (Vec<usize>, Vec<StreamDraft>) = self.entities.drafts().unzip();
        let place = |(entity, name, payload)| {
            let stream = indices.iter().position(|index| *index == entity);
            Ok((stream.ok_or(Invalid::EventWithoutStream)?, name, payload))
        };
        let events = std::mem::take(&mut self.events).into_iter().map(place);
        let draft = CommitDraft {
            meta: self.meta.clone(),
            name: envelope.command_name()?,
            payload: envelope.payload().clone(),
            fingerprint: envelope.meta.key.is_some().then(|| envelope.fingerprint()).transpose()?,
            output,
            streams,
            events: events.collect::<Result<_, Invalid>>()?,
        };
        draft.check(&self.backing.limits)
    }

    /// What was committed is the newest state; keep it.
    fn remember(&self) {
        self.entities.changed().for_each(|(stream, entry)| self.backing.cache.put(stream, entry));
    }
}
