//! [`Repo::commit`]: the one place where anything becomes true.

use std::sync::Arc;

use sequor_core::commit::{CommitDraft, StreamDraft};
use sequor_core::ports::{Committed, Store, Submitted, Transaction};
use sequor_core::{Commit, Error, Invalid, Json, Record, StoreError};

use super::{Backing, Ground, Repo, Speculation};
use crate::envelope::Envelope;
use crate::error::Halt;
use crate::lanes::Link;

impl<S: Store> Repo<S> {
    /// Makes a command true: alone, in one step, or as part of the open transaction, which becomes
    /// true with [`Repo::finish`]; until then the record has no position.
    pub(crate) async fn commit(
        &mut self,
        envelope: &Envelope,
        output: Json,
    ) -> Result<Arc<Record>, Halt> {
        let commit = match self.draft(envelope, output) {
            Ok(commit) => commit,
            Err(invalid) => {
                self.become_certain().await?;
                return Err(invalid.into());
            }
        };
        let record = match &mut self.ground {
            Ground::Speculative(speculation) => {
                let speculation = speculation.take();
                self.submit(commit, speculation.ok_or_else(committed_twice)?).await?
            }
            Ground::Transaction(_) => self.write(commit).await?,
        };
        Ok(Arc::new(record))
    }

    /// Gives a commit its place, lets the next one decide, and waits for the answer.
    async fn submit(
        &mut self,
        mut commit: Commit,
        mut speculation: Speculation,
    ) -> Result<Record, Halt> {
        let after = speculation.after()?;
        let believed = self.unchecked && speculation.is_first_try();
        commit.streams.iter_mut().for_each(|write| write.after = after);
        self.entities.written(&commit);
        let left = self.entities.changed().next().map(|(_, entry)| entry);
        let link = Link::of(commit.meta.command_id);
        let Backing { store, projections, .. } = &*self.backing;
        speculation.submits();
        let submitted = store.submit(commit, projections).await;
        let submitted = submitted.unwrap_or_else(|error| Submitted::ready(Err(error)));
        match speculation.submitted(submitted, link, left).await {
            Ok(Committed::Fresh(record)) => Ok(record),
            Ok(Committed::Known(record)) => Err(Halt::Known(Box::new(record))),
            Err(StoreError::Conflict { .. }) if after.is_some() => Err(Halt::Fell),
            Err(error) => {
                self.backing.forget_if_behind(&error);
                let is_behind = believed && matches!(error, StoreError::Conflict { .. });
                Err(if is_behind { Halt::Behind(error) } else { error.into() })
            }
        }
    }

    async fn write(&mut self, commit: Commit) -> Result<Record, Halt> {
        let Ground::Transaction(transaction) = &mut self.ground else {
            return Err(committed_twice());
        };
        let record = commit.record(None);
        self.entities.written(&commit);
        let written = transaction.write(commit, &self.backing.projections).await;
        written.inspect_err(|error| self.backing.forget_if_behind(error))?;
        Ok(record)
    }

    /// Makes everything true that was written into the open transaction.
    pub(crate) async fn finish(self) -> Result<Vec<Record>, Halt> {
        let Self { ground: Ground::Transaction(transaction), entities, backing, .. } = self else {
            return Ok(Vec::new());
        };
        let records = transaction.commit().await?;
        // What was committed is the newest state; keep it.
        entities.changed().for_each(|(stream, entry)| backing.cache.put(stream, entry));
        Ok(records)
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
}

fn committed_twice() -> Halt {
    Halt::Failed(Error::Corrupt { what: "a decider's command was committed twice".into() })
}
