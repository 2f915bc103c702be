//! The sessions that load, hold open transactions, and wait for locks: a bounded number of them.
//!
//! The driver's own pool pings a session when it is taken and when it comes back; here nobody pays
//! for that. A session comes back only from a call that has come to its end: after a cancelled call
//! or an error of the connection it is thrown away, so that nobody inherits an open transaction.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sequor_core::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connection::{Connect, Session};

#[derive(Debug)]
pub(crate) struct Pool {
    connect: Connect,
    prepare: &'static [&'static str],
    wait: Duration,
    permits: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    sessions: Vec<Session>,
    /// Grows when a session was lost: those made before it are thrown away, for they are probably
    /// lost as well.
    life: u64,
}

/// A session on loan. Dropping it throws it away; [`Loan::give_back`] does not.
#[derive(Debug)]
pub(crate) struct Loan {
    pool: Arc<Pool>,
    session: Option<Session>,
    life: u64,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(
        connect: Connect,
        prepare: &'static [&'static str],
        count: usize,
        wait: Duration,
    ) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(count));
        Arc::new(Self { connect, prepare, wait, permits, idle: Mutex::default() })
    }

    /// A free session; a new one as long as there are fewer than allowed.
    pub(crate) async fn lend(self: &Arc<Self>) -> Result<Loan, StoreError> {
        let permit = tokio::time::timeout(self.wait, Arc::clone(&self.permits).acquire_owned())
            .await
            .map_err(|_| StoreError::Busy)?
            .map_err(|_| StoreError::unavailable("the store is closed"))?;
        let (session, life) = {
            let mut idle = self.idle();
            (idle.sessions.pop(), idle.life)
        };
        let session = match session {
            Some(session) => session,
            None => self.connect.connect(self.prepare).await?,
        };
        Ok(Loan { pool: Arc::clone(self), session: Some(session), life, _permit: permit })
    }

    /// Puts a session in, as if it had been lent.
    pub(crate) fn adopt(&self, session: Session) {
        self.idle().sessions.push(session);
    }

    /// Closes them; whoever still works finishes.
    pub(crate) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut self.idle().sessions);
        for session in idle {
            session.close().await;
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loan {
    pub(crate) fn session(&mut self) -> &mut Session {
        // Invariant: only `give_back`, which takes the loan with it, takes the session away.
        self.session.as_mut().expect("a loan has its session")
    }

    /// Ends the loan after a call that came to its end: the session goes back, or is thrown away
    /// where the error may be its own.
    pub(crate) fn give_back<T>(mut self, result: &Result<T, StoreError>) {
        let mut idle = self.pool.idle();
        match result {
            Err(StoreError::Unavailable(_) | StoreError::Unknown) => {
                idle.life += 1;
                idle.sessions.clear();
            }
            Ok(_) | Err(_) => {
                if idle.life == self.life && !self.pool.permits.is_closed() {
                    idle.sessions.extend(self.session.take());
                }
            }
        }
    }
}
