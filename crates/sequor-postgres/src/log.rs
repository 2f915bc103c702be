//! Events in the order of their positions, up to the mark that no writer can undercut.
//!
//! A *candidate* is the highest visible position of a partition, with the transactions that hold
//! the partition's lock. When all of those have ended it becomes the *mark*: whoever drew a lower
//! position drew it earlier, under the lock, so everything up to the mark is visible to a new
//! snapshot or will never exist. See docs/adr/0009.
//!
//! Marks die with the session that took them, so each partition is read by one session of its own.
//!
//! Behind a pooler each statement may meet another session of the server, and marks hold there too:
//! * A candidate is taken by one statement, hence in one session: first the position, then the
//!   holders, which is the order that counts.
//! * Positions, locks and virtual transactions belong to the server, not to a session, and a
//!   transaction lets go of its locks after it has become visible to every snapshot that is taken
//!   from then on, in whichever session. So holders may be looked at in one, events be read in
//!   another.
//! * What a lost session tells otherwise, that the server may be another one now or have forgotten
//!   what was visible, a pooler hides: it keeps our connection over a failover or a crash. So each
//!   statement travels with a question for the server's life, in one message and hence in one
//!   session; another life than before ends the reader as a lost session does. A standby is no life
//!   to read in: it shows nobody's locks.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use sequor_core::ports::ReadLog;
use sequor_core::{Partition, Position, StoreError, StoredEvent};
use sqlx::postgres::PgRow;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::connection::{Connect, Session};
use crate::error::{corrupt, store_error};
use crate::row;
use crate::statement::{Protocol, Statement};
use crate::store::PostgresStore;

/// How far a partition can be read, as one session has found out.
#[derive(Clone, Debug)]
struct Mark {
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

    /// The candidate becomes the mark, or goes on waiting.
    fn settle(&mut self, candidate: Candidate) {
        if candidate.holders.is_empty() {
            self.position = candidate.position;
        } else {
            self.candidate = Some(candidate);
        }
    }
}

/// How long to wait before looking at the holders again, at first and at most.
const PAUSE: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// The sessions that read the log; each has its partitions.
#[derive(Debug)]
pub(crate) struct LogReaders {
    connect: Connect,
    seats: Vec<Mutex<Option<LogReader>>>,
}

/// A session with the marks that it took.
#[derive(Debug)]
struct LogReader {
    sight: Sight,
    marks: HashMap<Partition, Mark>,
}

/// A session, and which life of the server it shows, where that may change behind its back.
#[derive(Debug)]
struct Sight {
    session: Session,
    life: Option<String>,
}

impl LogReaders {
    pub(crate) fn new(connect: Connect, count: usize) -> Self {
        let seats = std::iter::repeat_with(Mutex::default).take(count).collect();
        Self { connect, seats }
    }

    /// Closes the sessions; whoever still reads finishes.
    pub(crate) async fn close(&self) {
        for seat in &self.seats {
            let reader = seat.lock().await.take();
            if let Some(LogReader { sight, .. }) = reader {
                sight.session.close().await;
            }
        }
    }

    async fn look(
        &self,
        partition: Partition,
        after: Position,
        limit: usize,
    ) -> Result<Read, StoreError> {
        let place = usize::from(partition.get()) % self.seats.len();
        let mut seat =
            self.seats.get(place).ok_or_else(|| corrupt("no session reads"))?.lock().await;
        // Taken out, so that a call that is given up half-way does not leave it there.
        let mut reader = match seat.take() {
            Some(reader) => reader,
            None => LogReader::new(self.connect.connect(&[]).await?),
        };
        let read = look(&mut reader, partition, after, limit).await;
        if !matches!(read, Err(StoreError::Unavailable(_))) {
            *seat = Some(reader);
        }
        read
    }
}

impl LogReader {
    fn new(session: Session) -> Self {
        Self { sight: Sight { session, life: None }, marks: HashMap::new() }
    }
}

impl Sight {
    /// The rows of a statement. [`StoreError::Unavailable`] where another life of the server
    /// answers than before.
    async fn ask(&mut self, statement: Statement<'_>) -> Result<Vec<PgRow>, StoreError> {
        let Self { session: Session { postgres, protocol, .. }, life } = self;
        let asked = statement.after(include_str!("sql/life.sql")).fetch_all(postgres).await;
        let mut rows = asked.map_err(store_error)?;
        if *protocol == Protocol::Simple {
            if rows.is_empty() {
                return Err(corrupt("the server's life is missing"));
            }
            let now = row::life(&rows.remove(0))?;
            let now = now.ok_or_else(|| StoreError::unavailable("the server is a standby"))?;
            if life.get_or_insert_with(|| now.clone()) != &now {
                return Err(StoreError::unavailable("the server behind the pooler is another one"));
            }
        }
        Ok(rows)
    }

    /// The one row of a statement.
    async fn ask_one(&mut self, statement: Statement<'_>) -> Result<PgRow, StoreError> {
        let row = self.ask(statement).await?.into_iter().next();
        row.ok_or_else(|| corrupt("a function has answered nothing"))
    }
}

#[async_trait]
impl ReadLog for PostgresStore {
    async fn read_after(
        &self,
        partition: Partition,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        if limit == 0 || !self.partitions().contains(partition) {
            return Ok(Vec::new());
        }
        let until = Instant::now() + self.mark_wait_max();
        let mut pause = PAUSE;
        loop {
            match self.log_readers().look(partition, after, limit).await? {
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

async fn look(
    reader: &mut LogReader,
    partition: Partition,
    after: Position,
    limit: usize,
) -> Result<Read, StoreError> {
    let LogReader { sight, marks } = reader;
    let mark = marks.entry(partition).or_insert(Mark::UNKNOWN);
    if mark.position <= after && mark.candidate.is_some() {
        look_at_holders(mark, partition, sight).await?;
    }
    if mark.position <= after && mark.candidate.is_none() {
        take_candidate(mark, partition, sight).await?;
    }
    if mark.position > after {
        return read_up_to(sight, partition, after..mark.position, limit).await.map(Read::Events);
    }
    let is_pending = mark.candidate.as_ref().is_some_and(|one| one.position > after);
    Ok(if is_pending { Read::Pending } else { Read::Events(Vec::new()) })
}

/// Takes a new candidate; it is the mark at once where nobody holds the lock.
async fn take_candidate(
    mark: &mut Mark,
    partition: Partition,
    sight: &mut Sight,
) -> Result<(), StoreError> {
    let candidate = read_candidate(sight, partition).await?;
    if candidate.position > mark.position {
        mark.settle(candidate);
    }
    Ok(())
}

/// Looks whether those have ended that the candidate waits for.
async fn look_at_holders(
    mark: &mut Mark,
    partition: Partition,
    sight: &mut Sight,
) -> Result<(), StoreError> {
    let now = read_holders(sight, partition).await?;
    if let Some(mut candidate) = mark.candidate.take() {
        candidate.holders.retain(|holder| now.contains(holder));
        mark.settle(candidate);
    }
    Ok(())
}

async fn read_candidate(sight: &mut Sight, partition: Partition) -> Result<Candidate, StoreError> {
    let read = sight.session.statement(include_str!("sql/read_candidate.sql"));
    row::candidate(&sight.ask_one(read.bind(row::partition_number(partition))).await?)
}

async fn read_holders(sight: &mut Sight, partition: Partition) -> Result<Vec<String>, StoreError> {
    let read = sight.session.statement(include_str!("sql/read_holders.sql"));
    row::holders(&sight.ask_one(read.bind(row::partition_number(partition))).await?)
}

async fn read_up_to(
    sight: &mut Sight,
    partition: Partition,
    range: std::ops::Range<Position>,
    limit: usize,
) -> Result<Vec<StoredEvent>, StoreError> {
    let number = |position: Position| i64::try_from(position.get()).unwrap_or(i64::MAX);
    let read = sight
        .session
        .statement(include_str!("sql/read_after.sql"))
        .bind(row::partition_number(partition))
        .bind(number(range.start))
        .bind(number(range.end))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX));
    sight.ask(read).await?.iter().map(row::logged_event).collect()
}
