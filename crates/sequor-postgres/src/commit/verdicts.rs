//! What the rows of a commit's call say of each command.

use std::collections::HashMap;

use sequor_core::ports::Committed;
use sequor_core::{Commit, Position, Record, StoreError, StreamId, Version};
use sqlx::postgres::PgRow;

use crate::error::corrupt;
use crate::row::columns::Columns;
use crate::row::record;

// Columns of `commit.sql` and `commit_one.sql`, behind those of a record.
const VERDICTS: usize = 12;
const POSITIONS: usize = 13;
const PLACE: usize = 14;
const STREAM: usize = 15;
const ACTUAL: usize = 16;
const SCOPE: usize = 17;
const VALUE: usize = 18;
const HOLDER_AGGREGATE: usize = 19;
const HOLDER_ID: usize = 20;

/// What became of a commit in a batch.
#[derive(Debug)]
pub(crate) enum Judged {
    /// True once the transaction is: the positions of its events.
    Fresh(Vec<Position>),
    /// This record answers.
    Known(Record),
    /// May not.
    Refused(StoreError),
    /// Somebody else held a lock for too long.
    Blocked,
    /// There was no time to try, because others had to wait.
    Untried,
}

impl Judged {
    /// What its caller is told; `None` where it was blocked.
    pub(crate) fn answer(self, commit: &Commit) -> Option<Result<Committed, StoreError>> {
        match self {
            Self::Fresh(positions) => {
                Some(Ok(Committed::Fresh(commit.record(positions.last().copied()))))
            }
            Self::Known(record) => Some(Ok(Committed::Known(record))),
            Self::Refused(error) => Some(Err(error)),
            Self::Blocked | Self::Untried => None,
        }
    }
}

/// What became of each commit: the first row has the verdicts of all and the positions of what
/// happened, the others say more of one command each. Streams are named by their place.
///
/// # Errors
/// [`StoreError::Corrupt`] where the answer as a whole makes no sense. What does not of one command
/// refuses that one.
pub(super) fn judged<'c>(
    rows: &[PgRow],
    commits: impl ExactSizeIterator<Item = &'c Commit>,
    streams: &[&StreamId],
) -> Result<Vec<Judged>, StoreError> {
    let first = rows.first().ok_or_else(|| corrupt("a batch was answered without verdicts"))?;
    let first = columns(first);
    let verdicts: Vec<i16> = first.get(VERDICTS, "verdicts")?;
    if verdicts.len() != commits.len() {
        return Err(corrupt("a batch was answered with verdicts of another one"));
    }
    let positions: Option<Vec<Option<i64>>> = first.optional(POSITIONS, "positions")?;
    let mut positions = positions.unwrap_or_default().into_iter();
    let more = more(rows)?;
    let each = verdicts.into_iter().zip(commits).enumerate().map(|(place, (verdict, commit))| {
        let positions: Vec<_> = positions.by_ref().take(commit.events.len()).collect();
        match (verdict, more.get(&place)) {
            (0, _) => fresh(&positions, commit),
            (1 | 5, Some(more)) => record(more.row, commit.meta.tenant).map(Judged::Known),
            (2, Some(more)) => conflict(more, commit, streams),
            (3, Some(more)) => taken(more, commit),
            (6, _) => Ok(Judged::Untried),
            // Of a record that was archived meanwhile there is no more: it goes again.
            (1 | 4 | 5, _) => Ok(Judged::Blocked),
            _ => Err(corrupt(format!("a command was answered with the verdict {verdict}"))),
        }
    });
    Ok(each.map(|judged| judged.unwrap_or_else(Judged::Refused)).collect())
}

fn columns(row: &PgRow) -> Columns<'_> {
    Columns { row, place: "the verdicts of a batch" }
}

/// The rows that say more of one command, by its place.
fn more(rows: &[PgRow]) -> Result<HashMap<usize, Columns<'_>>, StoreError> {
    let mut more = HashMap::new();
    for row in rows {
        let columns = columns(row);
        if columns.optional::<i32>(PLACE, "place")?.is_some() {
            more.insert(columns.place_in_list(PLACE)?, columns);
        }
    }
    Ok(more)
}

fn fresh(positions: &[Option<i64>], commit: &Commit) -> Result<Judged, StoreError> {
    let drawn = positions.iter().map_while(|position| u64::try_from((*position)?).ok());
    let drawn: Vec<Position> = drawn.map(Position::new).collect();
    if drawn.len() < commit.events.len() {
        return Err(corrupt("events were written without their positions"));
    }
    Ok(Judged::Fresh(drawn))
}

fn conflict(
    more: &Columns<'_>,
    commit: &Commit,
    streams: &[&StreamId],
) -> Result<Judged, StoreError> {
    let stream = streams.get(more.place_in_list(STREAM)?).copied();
    let write = commit.streams.iter().find(|write| Some(&write.stream) == stream);
    let write = write.ok_or_else(|| corrupt("a conflict on a stream that was not sent"))?;
    let (stream, expected) = (write.stream.clone(), write.expected);
    let actual = Version::new(more.number(ACTUAL, "actual")?);
    Ok(Judged::Refused(StoreError::Conflict { stream, expected, actual }))
}

fn taken(more: &Columns<'_>, commit: &Commit) -> Result<Judged, StoreError> {
    let holder = StreamId {
        tenant: commit.meta.tenant,
        aggregate: more.name(HOLDER_AGGREGATE, "holder_aggregate")?,
        id: more.aggregate_id(HOLDER_ID, "holder_id")?,
    };
    let (scope, value) = (more.name(SCOPE, "scope")?, more.get(VALUE, "value")?);
    Ok(Judged::Refused(StoreError::UniqueTaken { scope, value, holder }))
}
