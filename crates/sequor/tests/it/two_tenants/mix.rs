//! A command whose handler does everything that a handler can do, and looks around with SQL.

use sequor::memory::MemoryStore;
use sequor::{Command, Error, ProjectionError, Repo, async_trait};
use serde::{Deserialize, Serialize};

use crate::bank::{ADDRESS, Account, Ask, Happened, Refused, deposit, key};
use crate::home::{Fresh, Home};
use crate::watched::Watched;

/// Whatever a handler can do.
#[derive(Clone, Debug, Command, Serialize, Deserialize)]
#[command(name = "bank.mix", output = String, rejection = Refused)]
pub(crate) struct Mix {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) value: String,
    pub(crate) cents: i64,
    pub(crate) text: String,
    pub(crate) turn: Turn,
}

/// What the handler does after it has looked around.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Turn {
    Post,
    Hold,
    End,
    Issue,
    Refuse,
}

/// A store whose rows a handler can look at.
#[async_trait]
pub(crate) trait Rows: Fresh {
    /// What a handler's SQL finds that has no condition: which tenants, how many rows, and what is
    /// in them. Empty where the store has no wall and SQL names the tenant itself.
    async fn rows(connection: &mut Self::Connection) -> Result<String, ProjectionError>;
}

#[async_trait]
impl Rows for MemoryStore {
    async fn rows(_: &mut Self::Connection) -> Result<String, ProjectionError> {
        Ok(String::new())
    }
}

#[cfg(feature = "sqlite")]
#[async_trait]
impl Rows for sequor::sqlite::SqliteStore {
    async fn rows(_: &mut Self::Connection) -> Result<String, ProjectionError> {
        Ok(String::new())
    }
}

#[cfg(feature = "postgres")]
#[async_trait]
impl Rows for sequor::postgres::PostgresStore {
    async fn rows(connection: &mut Self::Connection) -> Result<String, ProjectionError> {
        Ok(sqlx::query_scalar(LOOK).fetch_one(connection).await?)
    }
}

/// Everything that may be read, of whoever it is. Ids of commands and times are left out.
#[cfg(feature = "postgres")]
const LOOK: &str = "
    SELECT format(
        'tenants %s, rows %s, digest %s', string_agg(DISTINCT seen.tenant_id::text, ' '), count(*),
        md5(string_agg(seen.what, E'\\n' ORDER BY seen.what COLLATE \"C\"))
    )
    FROM (
        SELECT tenant_id, format('sum %s', amount) AS what FROM sums
        UNION ALL
        SELECT tenant_id, format('command %s %s %s %s', key, name, actor, payload)
        FROM sequor.commands
        UNION ALL
        SELECT tenant_id, format('event %s %s %s %s', aggregate, aggregate_id, version, payload)
        FROM sequor.events
        UNION ALL
        SELECT tenant_id, format('stream %s %s %s', aggregate, aggregate_id, version)
        FROM sequor.streams
        UNION ALL
        SELECT tenant_id, format('key %s', key) FROM sequor.idempotency_keys
        UNION ALL
        SELECT tenant_id, format('archived %s', key) FROM sequor.idempotency_keys_archive
        UNION ALL
        SELECT tenant_id, format('value %s %s %s', scope, value, aggregate_id)
        FROM sequor.unique_keys
        UNION ALL
        SELECT tenant_id, 'snapshot' FROM sequor.snapshots
        UNION ALL
        SELECT tenant_id, 'message' FROM sequor.outbox
    ) AS seen";

/// The handler. What it saw becomes an event and its output.
pub(crate) async fn mix<H: Rows>(
    mix: &Mix,
    repo: &mut Repo<Watched<H>>,
) -> Result<String, Error<Refused>> {
    let seen = H::rows(repo.connection()?).await.map_err(|error| repo.own_rows_failed(error))?;
    let tenant = repo.tenant();
    let added = <H as Home>::add(repo.connection()?, tenant, mix.cents).await;
    added.map_err(|error| repo.own_rows_failed(error))?;
    let from = repo.load::<Account>(&mix.from).await?;
    let to = repo.load::<Account>(&mix.to).await?;
    let text = format!("{} saw {seen}", mix.text);
    repo.emit(from, &Happened::Noted { text: text.clone() })?;
    match mix.turn {
        Turn::Post => {
            repo.emit(from, &Happened::Posted { cents: -mix.cents })?;
            repo.emit(to, &Happened::Posted { cents: mix.cents })?;
        }
        Turn::Hold => repo.hold(to, ADDRESS, &mix.value)?,
        Turn::End => repo.release_all(to),
        Turn::Issue => {
            repo.guard(to);
            repo.issue(deposit(&mix.to, mix.cents), Some(key(&mix.value)))?;
            let noted = mix.text.clone();
            repo.issue(Ask::Note { account: mix.from.clone(), text: noted, times: 2 }, None)?;
        }
        Turn::Refuse => return Err(Error::Rejected(Refused::Overdrawn)),
    }
    Ok(format!("{text}, cents {}", repo.get(to).cents))
}
