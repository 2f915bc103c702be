//! Events in the order of their positions, up to the mark that no writer can undercut.
//!
//! A *candidate* is the highest visible position of a partition, with the transactions that hold
//! the partition's lock. When all of those have ended it becomes the *mark*: whoever drew a lower
//! position drew it earlier, under the lock, so everything up to the mark is visible to a new
//! snapshot or will never exist. See docs/adr/0009.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use sequor_core::ports::ReadLog;
use sequor_core::{Partition, Position, StoreError, StoredEvent};
use sqlx::PgConnection;
use tokio::time::Instant;

use crate::connection::Session;
use crate::error::store_error;
use crate::row;
use crate::store::PostgresStore;

/// How far a partition can be read, as one session has found out.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// Everything up to here is visible, or will never exist.
    position: Position,
    /// What may become the mark, and who has yet to end.
    candidate: Option<Candidate>,
}

/// A position that may become the mark.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) position: Position,
    /// The transactions that held the lock when the position was visible.
    pub(crate) holders: Vec<String>,
}

impl Mark {
    /// Nothing is known yet.
    const UNKNOWN: Self = Self { position: Position::START, candidate: None };
}

/// How long to wait before looking at the holders again, at first and at most.
const PAUSE: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(20);

#[async_trait]
impl ReadLog for PostgresStore {
    async fn read_after(
        &self,
        partition: Partition,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        if limit == 0 || partition.get() >= self.partitions().get() {
            return Ok(Vec::new());
        }
        let until = Instant::now() + self.mark_wait_max();
        let mut pause = PAUSE;
        loop {
            let mut loan = self.pool().lend().await?;
            let read = read_once(loan.session(), partition, after, limit).await;
            loan.give_back(&read);
            match read? {
                // Something is there, and cannot be read yet. No session is held meanwhile.
                Read::Pending if Instant::now() < until => tokio::time::sleep(pause).await,
                Read::Pending => return Ok(Vec::new()),
                Read::Events(events) => return Ok(events),
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// What one look has found.
enum Read {
    Events(Vec<StoredEvent>),
    /// There are events after the mark, and writers that began before them.
    Pending,
}

async fn read_once(
    session: &mut Session,
    partition: Partition,
    after: Position,
    limit: usize,
) -> Result<Read, StoreError> {
    let Session { postgres, marks } = session;
    let mark = marks.entry(partition).or_insert(Mark::UNKNOWN);
    if mark.position <= after {
        advance(mark, partition, postgres).await?;
    }
    if mark.position > after {
        return read_up_to(postgres, partition, after..mark.position, limit).await.map(Read::Events);
    }
    let is_pending = mark.candidate.as_ref().is_some_and(|one| one.position > after);
    Ok(if is_pending { Read::Pending } else { Read::Events(Vec::new()) })
}

/// Takes a new candidate, or looks whether those have ended that the last one waits for.
async fn advance(
    mark: &mut Mark,
    partition: Partition,
    postgres: &mut PgConnection,
) -> Result<(), StoreError> {
    let candidate = match mark.candidate.take() {
        None => read_candidate(postgres, partition).await?,
        Some(Candidate { position, mut holders }) => {
            let now = read_holders(postgres, partition).await?;
            holders.retain(|holder| now.contains(holder));
            Candidate { position, holders }
        }
    };
    if candidate.holders.is_empty() {
        mark.position = mark.position.max(candidate.position);
    } else {
        mark.candidate = Some(candidate);
    }
    Ok(())
}

async fn read_candidate(
    postgres: &mut PgConnection,
    partition: Partition,
) -> Result<Candidate, StoreError> {
    let read = sqlx::query(include_str!("sql/read_candidate.sql"))
        .bind(row::partition_number(partition))
        .fetch_one(postgres)
        .await;
    row::candidate(&read.map_err(store_error)?)
}

async fn read_holders(
    postgres: &mut PgConnection,
    partition: Partition,
) -> Result<Vec<String>, StoreError> {
    let read = sqlx::query(include_str!("sql/read_holders.sql"))
        .bind(row::partition_number(partition))
        .fetch_one(postgres)
        .await;
    row::holders(&read.map_err(store_error)?)
}

async fn read_up_to(
    postgres: &mut PgConnection,
    partition: Partition,
    range: std::ops::Range<Position>,
    limit: usize,
) -> Result<Vec<StoredEvent>, StoreError> {
    let number = |position: Position| i64::try_from(position.get()).unwrap_or(i64::MAX);
    let mut rows = sqlx::query(include_str!("sql/read_after.sql"))
        .bind(row::partition_number(partition))
        .bind(number(range.start))
        .bind(number(range.end))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch(postgres);
    let mut events = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(store_error)? {
        events.push(row::logged_event(&row)?);
    }
    Ok(events)
}
