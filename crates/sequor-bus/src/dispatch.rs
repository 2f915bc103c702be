//! What stands at the chain's end: retry → load → decide / handle → `Repo::commit`.

use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use sequor_core::ports::{HistoryRequest, Store};
use sequor_core::{Disposition, Error, Invalid, Record, StoreError};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use tracing::Instrument as _;

use crate::envelope::Envelope;
use crate::error::{Halt, is_refusal, of_reading};
use crate::lanes::Turn;
use crate::middleware::End;
use crate::reply::Reply;
use crate::repo::{Backing, Repo, Speculation};
use crate::retry::{Past, Retry};
use crate::route::Routes;
use crate::service::Inner;

/// How often a decider may meet a conflict before it works in an open transaction, as a handler does.
/// There it cannot lose again: its store has one writer, or it holds what it loads.
const OPTIMISTIC_TRIES: u32 = 2;

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
        envelope.check_pinned()?;
        repo.claim(envelope).await?;
        let output = route.run(envelope, repo).await?;
        repo.commit(envelope, output).await.map(Reply::executed)
    }
}

/// The end for a command that came alone.
pub(crate) struct Alone<'a, S: Store>(pub(crate) &'a Inner<S>);

#[async_trait]
impl<S: Store> End for Alone<'_, S> {
    async fn run(&self, envelope: &mut Envelope) -> Result<Reply, Error> {
        let retry = self.0.dispatch.retry.for_commands(slice::from_ref(envelope));
        let mut past = Past::default();
        loop {
            match self.attempt(envelope, &past).await {
                Ok(reply) => return Ok(reply),
                Err(halt) => match retry.pause_after(halt, &mut past.tries, envelope).await {
                    Ok(()) => {}
                    Err(halt) => return answer(halt, envelope),
                },
            }
        }
    }

    async fn record(&self, envelope: &Envelope) -> Result<Option<Record>, Error> {
        self.look_up(envelope).await.map_err(of_reading)
    }
}

impl<S: Store> Alone<'_, S> {
    async fn attempt(&self, envelope: &Envelope, past: &Past) -> Result<Reply, Halt> {
        let (Inner { dispatch, .. }, tries) = (self.0, past.tries);
        let Some(stream) = dispatch.routes.find(envelope.name())?.decided_by(envelope)? else {
            return self.in_transaction(envelope, past).await;
        };
        if tries.falls > 0 && envelope.meta.key.is_some() {
            // Among those who fell are replays, and they would make others fall.
            if let Some(record) = self.look_up(envelope).await? {
                return Err(Halt::Known(Box::new(record)));
            }
        }
        if tries.conflicts >= OPTIMISTIC_TRIES {
            past.note(&stream);
        }
        let turn = dispatch.backing.lanes.enter(stream).await;
        if tries.conflicts >= OPTIMISTIC_TRIES {
            return self.in_turn(envelope, turn, past).await;
        }
        let trusts_cache = envelope.options.if_version.is_none();
        let speculation = Speculation::begin(turn, tries, trusts_cache).await;
        let mut repo = Repo::speculative(&dispatch.backing, envelope, speculation)?;
        dispatch.step(envelope, &mut repo).await
    }

    async fn look_up(&self, envelope: &Envelope) -> Result<Option<Record>, StoreError> {
        let (tenant, key) = (envelope.tenant()?, envelope.meta.key.as_ref());
        let request = HistoryRequest { tenant, key, stream: None };
        Ok(self.0.dispatch.backing.store.history(request).await?.record)
    }

    /// A decider in a transaction. What is under way may hang on an earlier try of this command, so
    /// it goes first.
    async fn in_turn(&self, envelope: &Envelope, turn: Turn, past: &Past) -> Result<Reply, Halt> {
        if !turn.is_clear().await {
            return Err(StoreError::Busy.into());
        }
        self.in_transaction(envelope, past).await
    }

    /// The command and what it issues, in one transaction. It has come through the chain already;
    /// what it issues has not.
    async fn in_transaction(&self, envelope: &Envelope, past: &Past) -> Result<Reply, Halt> {
        let together = Together::new(self.0, past);
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
    let retry = inner.dispatch.retry.for_commands(envelopes);
    let mut past = Past::default();
    loop {
        match Together::new(inner, &past).run_all(Vec::new(), envelopes.to_vec()).await {
            Ok(mut replies) => {
                replies.truncate(envelopes.len());
                return Ok(replies);
            }
            Err(halt) => match retry.pause_after(halt, &mut past.tries, first).await {
                Ok(()) => {}
                Err(halt) => return answer(halt, first).map(|reply| vec![reply]),
            },
        }
    }
}

/// The end for commands that share a transaction.
struct Together<'a, S: Store> {
    inner: &'a Inner<S>,
    /// What the tries before this one have met.
    past: Past,
    /// Opened by the first command that gets so far.
    repo: Mutex<Option<Repo<S>>>,
    /// Whether trying all of them again may help; an error that has come through the chain does
    /// not tell any more.
    transient: AtomicBool,
}

#[async_trait]
impl<S: Store> End for Together<'_, S> {
    async fn run(&self, envelope: &mut Envelope) -> Result<Reply, Error> {
        let reply = self.step(envelope).await;
        reply.or_else(|halt| self.answer(halt, envelope))
    }

    async fn record(&self, envelope: &Envelope) -> Result<Option<Record>, Error> {
        let claimed = async { self.repo(envelope).await?.claim(envelope).await };
        match claimed.await {
            Ok(()) => Ok(None),
            Err(Halt::Known(record)) => Ok(Some(*record)),
            Err(halt) => self.answer(halt, envelope).map(|_| None),
        }
    }
}

impl<'a, S: Store> Together<'a, S> {
    fn new(inner: &'a Inner<S>, past: &Past) -> Self {
        let past = past.clone();
        Self { inner, past, repo: Mutex::new(None), transient: AtomicBool::new(false) }
    }

    async fn step(&self, envelope: &Envelope) -> Result<Reply, Halt> {
        let mut repo = self.repo(envelope).await?;
        self.inner.dispatch.step(envelope, &mut repo).await
    }

    /// The unit of work that all commands share.
    async fn repo(&self, envelope: &Envelope) -> Result<MappedMutexGuard<'_, Repo<S>>, Halt> {
        let mut repo = self.repo.lock().await;
        if repo.is_none() {
            *repo = Some(Repo::open(&self.inner.dispatch.backing, envelope, &self.past).await?);
        }
        MutexGuard::try_map(repo, Option::as_mut).map_err(|_| nothing_done())
    }

    /// Runs the queue to its end, with what its commands issue, and commits. Comes with the replies
    /// of those that have run before.
    async fn run_all(
        self,
        mut replies: Vec<Reply>,
        queue: Vec<Envelope>,
    ) -> Result<Vec<Reply>, Halt> {
        let mut queue = VecDeque::from(queue);
        while let Some(mut envelope) = queue.pop_front() {
            let span = envelope.span();
            let reply = self.inner.chain.run(&mut envelope, &self).instrument(span).await;
            replies.push(reply.map_err(|error| self.halt(error, &envelope))?);
            queue.extend(self.issued(&envelope).await);
            let (count, max) = (replies.len() + queue.len(), self.inner.dispatch.commands_max);
            if count > max {
                return Err(Invalid::TooMany { what: "commands", count, max }.into());
            }
        }
        let records = match self.repo.into_inner() {
            Some(repo) => repo.finish().await?,
            None => Vec::new(),
        };
        settle(replies, records)
    }

    /// The commands that a command has issued, ready to run.
    async fn issued(&self, by: &Envelope) -> Vec<Envelope> {
        let issued = self.repo.lock().await.as_mut().map(Repo::take_issued).unwrap_or_default();
        let Inner { ids, clock, .. } = self.inner;
        issued.into_iter().map(|one| one.issued_by(by).stamp(ids.next(), clock.now())).collect()
    }

    fn answer(&self, halt: Halt, envelope: &Envelope) -> Result<Reply, Error> {
        self.transient.store(halt.is_transient(), Ordering::Relaxed);
        answer(halt, envelope)
    }

    fn halt(&self, error: Error, envelope: &Envelope) -> Halt {
        let error = of_issued(error, envelope);
        if self.transient.load(Ordering::Relaxed) {
            return Halt::Transient(error);
        }
        Halt::Failed(error)
    }
}

/// A record answers where the key was known; anything else is the caller's error.
fn answer(halt: Halt, envelope: &Envelope) -> Result<Reply, Error> {
    match halt {
        Halt::Known(record) => Ok(Reply::replayed(Arc::new(*record))),
        Halt::Fell => Err(StoreError::Busy.for_command(envelope.command_id())),
        Halt::Store(error) | Halt::Behind(error) => Err(error.for_command(envelope.command_id())),
        Halt::Transient(error) | Halt::Failed(error) => Err(error),
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
