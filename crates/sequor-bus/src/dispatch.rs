//! What stands at the chain's end: retry → load → decide / handle → `Repo::commit`.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use sequor_core::ports::Store;
use sequor_core::{Disposition, Error, Invalid, Record};
use tokio::sync::Mutex;

use crate::envelope::Envelope;
use crate::error::{Halt, is_refusal};
use crate::middleware::End;
use crate::reply::Reply;
use crate::repo::{Backing, Repo};
use crate::retry::Retry;
use crate::route::Routes;
use crate::service::Inner;

/// Finds what handles a command, and makes it true.
pub(crate) struct Dispatch<S: Store> {
    pub(crate) routes: Routes<S>,
    pub(crate) backing: Arc<Backing<S>>,
    pub(crate) retry: Retry,
    /// How many commands may share a transaction.
    pub(crate) commands_max: usize,
}

impl<S: Store> Dispatch<S> {
    /// One command in a unit of work: claim → load → decide / handle → commit.
    async fn step(&self, envelope: &Envelope, repo: &mut Repo<S>) -> Result<Reply, Halt> {
        let route = self.routes.find(envelope.name())?;
        if let Some(key) = &envelope.meta.key
            && let Some(record) = repo.claim(key).await?
        {
            return Err(Halt::Known(Box::new(record)));
        }
        let output = route.run(envelope, repo).await?;
        repo.commit(envelope, output).await.map(Reply::executed)
    }
}

/// The end for a command that came alone.
pub(crate) struct Alone<'a, S: Store>(pub(crate) &'a Inner<S>);

#[async_trait]
impl<S: Store> End for Alone<'_, S> {
    async fn run(&self, envelope: &mut Envelope) -> Result<Reply, Error> {
        let retry = self.0.dispatch.retry.for_call(envelope.options.if_version.is_some());
        let mut retries = 0;
        loop {
            match self.attempt(envelope, retries).await {
                Ok(reply) => return Ok(reply),
                Err(halt) => match retry.pause_after(halt, &mut retries, envelope).await {
                    Ok(()) => {}
                    Err(halt) => return answer(halt, envelope),
                },
            }
        }
    }
}

impl<S: Store> Alone<'_, S> {
    async fn attempt(&self, envelope: &Envelope, retries: u32) -> Result<Reply, Halt> {
        let Inner { dispatch, .. } = self.0;
        if dispatch.routes.find(envelope.name())?.needs_transaction() {
            return self.in_transaction(envelope).await;
        }
        let mut repo = Repo::speculative(&dispatch.backing, envelope, retries)?;
        dispatch.step(envelope, &mut repo).await
    }

    async fn in_transaction(&self, envelope: &Envelope) -> Result<Reply, Halt> {
        let together = Together::open(self.0, envelope).await?;
        let first = together.step(envelope).await?;
        let issued = together.issued(envelope).await;
        let replies = together.run_all(vec![first], issued).await?;
        replies.into_iter().next().ok_or_else(nothing_done)
    }
}

/// Runs commands in one transaction, first in, first out, each through the whole chain.
pub(crate) async fn run_together<S: Store>(
    inner: &Inner<S>,
    envelopes: &[Envelope],
) -> Result<Vec<Reply>, Error> {
    let Some(first) = envelopes.first() else {
        return Ok(Vec::new());
    };
    let mut retries = 0;
    loop {
        let attempt = async {
            let together = Together::open(inner, first).await?;
            together.run_all(Vec::new(), envelopes.to_vec()).await
        };
        match attempt.await {
            Ok(mut replies) => {
                replies.truncate(envelopes.len());
                return Ok(replies);
            }
            Err(halt) => match inner.dispatch.retry.pause_after(halt, &mut retries, first).await {
                Ok(()) => {}
                Err(halt) => return answer(halt, first).map(|reply| vec![reply]),
            },
        }
    }
}

/// The end for commands that share a transaction.
struct Together<'a, S: Store> {
    inner: &'a Inner<S>,
    repo: Mutex<Repo<S>>,
}

#[async_trait]
impl<S: Store> End for Together<'_, S> {
    async fn run(&self, envelope: &mut Envelope) -> Result<Reply, Error> {
        let reply = self.step(envelope).await;
        reply.or_else(|halt| answer(halt, envelope))
    }
}

impl<'a, S: Store> Together<'a, S> {
    async fn open(inner: &'a Inner<S>, first: &Envelope) -> Result<Self, Halt> {
        let repo = Repo::open(&inner.dispatch.backing, first).await?;
        Ok(Self { inner, repo: Mutex::new(repo) })
    }

    async fn step(&self, envelope: &Envelope) -> Result<Reply, Halt> {
        self.inner.dispatch.step(envelope, &mut *self.repo.lock().await).await
    }

    /// Runs the queue to its end, with what its commands issue, and commits.
    async fn run_all(
        self,
        mut replies: Vec<Reply>,
        queue: Vec<Envelope>,
    ) -> Result<Vec<Reply>, Halt> {
        let given = queue.iter().filter(|envelope| !envelope.issued).count();
        let mut queue = VecDeque::from(queue);
        while let Some(mut envelope) = queue.pop_front() {
            let reply = self.inner.chain.run(&mut envelope, &self).await;
            replies.push(reply.map_err(|error| of_issued(error, &envelope))?);
            queue.extend(self.issued(&envelope).await);
            let (count, max) = (replies.len() + queue.len(), self.inner.dispatch.commands_max);
            if count > max.max(given) {
                return Err(Invalid::TooMany { what: "commands", count, max }.into());
            }
        }
        let records = self.repo.into_inner().finish().await?;
        settle(replies, records)
    }

    /// The commands that a command has issued, ready to run.
    async fn issued(&self, by: &Envelope) -> Vec<Envelope> {
        let issued = self.repo.lock().await.take_issued();
        let Inner { ids, clock, .. } = self.inner;
        issued.into_iter().map(|one| one.issued_by(by).stamp(ids.next(), clock.now())).collect()
    }
}

/// A record answers where the key was known; anything else is the caller's error.
fn answer(halt: Halt, envelope: &Envelope) -> Result<Reply, Error> {
    match halt {
        Halt::Known(record) => Ok(Reply::replayed(Arc::new(*record))),
        Halt::Store(error) => Err(error.for_command(envelope.command_id())),
        Halt::Failed(error) => Err(error),
    }
}

/// A refusal of an issued command names it; the caller has not asked for it by itself.
fn of_issued(error: Error, envelope: &Envelope) -> Error {
    match envelope.command_name() {
        Ok(command_name) if envelope.issued && is_refusal(&error) => {
            Error::Issued { command_name, source: Box::new(error) }
        }
        _ => error,
    }
}

/// Gives each executed command its final record, now that positions are known.
fn settle(replies: Vec<Reply>, records: Vec<Record>) -> Result<Vec<Reply>, Halt> {
    let mut records = records.into_iter();
    let settle = |reply: Reply| {
        if reply.disposition() != Disposition::Executed {
            return Ok(reply);
        }
        let record = records.next().ok_or_else(nothing_done)?;
        Ok(Reply::executed(Arc::new(record)))
    };
    replies.into_iter().map(settle).collect()
}

fn nothing_done() -> Halt {
    Halt::Failed(Error::Corrupt { what: "a transaction ended without its command".into() })
}
