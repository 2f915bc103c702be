//! A row's columns, read one by one: NULL, another type and nonsense show as damage.

use chrono::{DateTime, Utc};
use sequor_core::{Actor, AggregateId, Fingerprint, Json, Name, Position, StoreError, Timestamp};
use sqlx::postgres::{PgRow, PgValueFormat};
use sqlx::{Decode, Postgres, Row, Type};

use super::{LEASE_UNTIL, POSITION};
use crate::error::corrupt;

/// A row's columns, and where they come from, for errors that name the place and no data.
pub(crate) struct Columns<'r> {
    pub(crate) row: &'r PgRow,
    pub(crate) place: &'static str,
}

impl<'r> Columns<'r> {
    /// A column that must be there.
    pub(crate) fn get<T>(&self, at: usize, column: &str) -> Result<T, StoreError>
    where
        T: Decode<'r, Postgres> + Type<Postgres>,
    {
        self.optional(at, column)?.ok_or_else(|| self.damaged(column, "is missing"))
    }

    /// A column that may be NULL.
    pub(crate) fn optional<T>(&self, at: usize, column: &str) -> Result<Option<T>, StoreError>
    where
        T: Decode<'r, Postgres> + Type<Postgres>,
    {
        self.row.try_get(at).map_err(|_| self.damaged(column, "has another type"))
    }

    pub(crate) fn number(&self, at: usize, column: &str) -> Result<u64, StoreError> {
        let number: i64 = self.get(at, column)?;
        u64::try_from(number).map_err(|_| self.damaged(column, "is negative"))
    }

    /// A position that may be NULL.
    pub(crate) fn position(&self, at: usize, column: &str) -> Result<Option<Position>, StoreError> {
        let number: Option<i64> = self.optional(at, column)?;
        let number = number.map(u64::try_from).transpose();
        Ok(number.map_err(|_| self.damaged(column, "is negative"))?.map(Position::new))
    }

    pub(crate) fn server_version(&self, at: usize) -> Result<u32, StoreError> {
        let number: i32 = self.get(at, "server_version")?;
        u32::try_from(number).map_err(|why| self.damaged("server_version", why))
    }

    /// A place, which the database counts from 1.
    pub(crate) fn place_in_list(&self, at: usize) -> Result<usize, StoreError> {
        let number: i32 = self.get(at, "place")?;
        usize::try_from(number - 1).map_err(|why| self.damaged("place", why))
    }

    pub(crate) fn name(&self, at: usize, column: &str) -> Result<Name, StoreError> {
        let text: String = self.get(at, column)?;
        Name::new(text).map_err(|_| self.damaged(column, "is no name"))
    }

    pub(crate) fn aggregate_id(&self, at: usize, column: &str) -> Result<AggregateId, StoreError> {
        let text: &str = self.get(at, column)?;
        AggregateId::new(text).map_err(|why| self.damaged(column, why))
    }

    /// The driver hands out bytes without copying them only where they did not come as text.
    pub(crate) fn fingerprint(&self, at: usize) -> Result<Option<Fingerprint>, StoreError> {
        let damaged = |why| self.damaged("fingerprint", why);
        let raw = self.row.try_get_raw(at);
        let is_text = raw.is_ok_and(|raw| raw.format() == PgValueFormat::Text);
        if is_text {
            let bytes: Option<Vec<u8>> = self.optional(at, "fingerprint")?;
            return bytes.map(|bytes| Fingerprint::from_bytes(&bytes)).transpose().map_err(damaged);
        }
        let bytes: Option<&[u8]> = self.optional(at, "fingerprint")?;
        bytes.map(Fingerprint::from_bytes).transpose().map_err(damaged)
    }

    pub(crate) fn actor(&self, at: usize) -> Result<Option<Actor>, StoreError> {
        let actor: Option<&str> = self.optional(at, "actor")?;
        actor.map(Actor::new).transpose().map_err(|why| self.damaged("actor", why))
    }

    pub(crate) fn time(&self, at: usize, column: &str) -> Result<Timestamp, StoreError> {
        let time: DateTime<Utc> = self.get(at, column)?;
        Ok(Timestamp::from(time))
    }

    pub(crate) fn json(&self, at: usize, column: &str) -> Result<Json, StoreError> {
        let text: &str = self.get(at, column)?;
        Ok(Json::from_stored(text))
    }

    /// Names the column, the table and, where the row has one, its position.
    pub(crate) fn damaged(&self, column: &str, why: impl std::fmt::Display) -> StoreError {
        let position = self.row.try_get::<i64, _>(POSITION).ok();
        let position = position.filter(|_| self.row.len() > LEASE_UNTIL);
        let at = position.map(|at| format!(" at position {at}")).unwrap_or_default();
        corrupt(format!("a damaged row in {}{at}: `{column}` {why}", self.place))
    }
}
