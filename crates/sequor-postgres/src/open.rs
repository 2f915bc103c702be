//! Installs the tables, and opens a store on them.

use std::num::NonZeroU16;
use std::sync::{Arc, LazyLock};

use sequor_core::Epoch;
use sqlx::migrate::Migrator;
use sqlx::{ConnectOptions, Connection, PgConnection};

use crate::commit::batch::COMMIT;
use crate::commit::one::COMMIT_ONE;
use crate::connection::{Connect, Session};
use crate::error::{OpenError, connect_error, is_not_granted, is_not_installed, store_error};
use crate::history::HISTORY;
use crate::log::LogReaders;
use crate::partitions::Partitions;
use crate::pool::Pool;
use crate::row;
use crate::settings::{PostgresSettings, SettingsError};
use crate::store::StoreParts;
use crate::transaction::CLAIM;
use crate::writer::Writers;

/// The store's own migrations, kept apart from those that a user may run on the same database.
static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!("../../migrations/postgres");
    migrator.dangerous_set_table_name("sequor.migrations");
    migrator
});

/// The oldest release of PostgreSQL that sequor works with.
const SERVER_VERSION_MIN: u32 = 15;

/// What an open database says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelfCheck {
    pub(crate) epoch: Epoch,
    pub(crate) partitions: NonZeroU16,
    /// Such as 150018.
    pub(crate) server_version: u32,
    pub(crate) encoding: String,
    pub(crate) next_position: i64,
    pub(crate) highest_position: i64,
    pub(crate) migration: i64,
    pub(crate) is_standby: bool,
    pub(crate) draws_in_order: bool,
}

/// Creates sequor's schema, tables, functions and its two roles in a database, or brings them up to
/// date. Run it with a role of its own that owns them: it may create schemas in the database, and
/// roles on the server unless `sequor_app` and `sequor_system` are there already.
///
/// Running it again, or twice at a time, changes nothing.
///
/// # Errors
/// [`OpenError::RolesMissing`] says what a superuser runs first where the owner may not create roles;
/// [`OpenError::Migrate`] says which step failed; none of that step is there then.
///
/// # Cancellation
/// What was finished stays; running it again goes on from there.
///
/// ```no_run
/// # async fn install() -> Result<(), sequor_postgres::OpenError> {
/// sequor_postgres::install(&"postgres://owner@localhost/billing".parse()?).await?;
/// # Ok(())
/// # }
/// ```
pub async fn install(owner: &PostgresSettings) -> Result<(), OpenError> {
    owner.check()?;
    if owner.pooled {
        return Err(SettingsError::InstallPooled.into());
    }
    let connected = owner.server.connect().await;
    let mut postgres =
        connected.map_err(|error| connect_error(&owner.server, store_error(error)))?;
    check_server(&mut postgres).await?;
    check_roles(&mut postgres, owner).await?;
    let partitions = owner.partitions.to_string();
    create_schema(&mut postgres).await?;
    sqlx::query(include_str!("sql/take_partitions.sql"))
        .bind(partitions)
        .execute(&mut postgres)
        .await
        .map_err(store_error)?;
    // Not `run`: the compiler cannot see that its future is `Send`.
    MIGRATOR.run_direct(None, &mut postgres, false).await.map_err(OpenError::Migrate)?;
    let positions = sqlx::query(include_str!("sql/create_positions.sql"));
    positions.execute(&mut postgres).await.map_err(store_error)?;
    if let Err(error) = postgres.close().await {
        tracing::debug!(%error, "a session did not close cleanly");
    }
    Ok(())
}

/// Refuses a server or a database that would fail half-way.
async fn check_server(postgres: &mut PgConnection) -> Result<(), OpenError> {
    let read = sqlx::query(include_str!("sql/check_server.sql")).fetch_one(postgres).await;
    let (server_version, encoding) = row::server(&read.map_err(store_error)?)?;
    fits(server_version, encoding)
}

/// Refuses an owner who would fail to make sequor's roles.
async fn check_roles(
    postgres: &mut PgConnection,
    owner: &PostgresSettings,
) -> Result<(), OpenError> {
    let check = sqlx::query(include_str!("sql/check_roles.sql")).fetch_optional(postgres);
    let role = || owner.server.get_username().to_owned();
    let row = check.await.map_err(store_error)?;
    row.map(drop).ok_or_else(|| OpenError::RolesMissing { role: role() })
}

fn fits(server_version: u32, encoding: String) -> Result<(), OpenError> {
    let server = server_version / 10_000;
    if server < SERVER_VERSION_MIN {
        return Err(OpenError::ServerTooOld { found: server });
    }
    if encoding != "UTF8" {
        return Err(OpenError::Encoding { found: encoding });
    }
    Ok(())
}

async fn create_schema(postgres: &mut PgConnection) -> Result<(), OpenError> {
    let sql = include_str!("sql/create_schema.sql");
    let first = sqlx::query(sql).execute(&mut *postgres).await;
    if first.is_err() {
        // Somebody else was making it at the same time.
        sqlx::query(sql).execute(postgres).await.map_err(store_error)?;
    }
    Ok(())
}

pub(crate) async fn open(settings: PostgresSettings) -> Result<StoreParts, OpenError> {
    settings.check()?;
    let connect = Connect::new(&settings);
    let prepare = &[HISTORY, CLAIM, COMMIT, COMMIT_ONE];
    let first = connect.connect(&[]).await;
    let mut first = first.map_err(|error| connect_error(&settings.server, error))?;
    let check = self_check(&mut first, &connect).await?;
    check_walls(&mut first).await?;
    if settings.pooled {
        check_isolation(&mut first, &connect).await?;
    }
    let partitions = Partitions::read(&mut first, check.partitions).await?;
    let pool = Pool::new(connect.clone(), prepare, settings.connections_max, settings.wait_max);
    pool.adopt(first);
    let log_readers = LogReaders::new(connect.clone(), settings.log_readers_max);
    let deadlocks = connect.deadlocks().clone();
    let writers = Writers::new(connect, Arc::clone(&pool), &settings);
    let SelfCheck { epoch, .. } = check;
    Ok(StoreParts { pool, writers, log_readers, deadlocks, epoch, partitions })
}

/// Reads what the database says about itself, and refuses what commands would fail on later.
async fn self_check(session: &mut Session, connect: &Connect) -> Result<SelfCheck, OpenError> {
    let needed = MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or_default();
    let read = session.statement(include_str!("sql/self_check.sql"));
    let read = read.fetch_one(&mut session.postgres);
    let check = match read.await {
        Ok(row) => row::self_check(&row)?,
        Err(error) if is_not_installed(&error) => {
            check_positions(session).await?;
            return Err(OpenError::NotInstalled { found: 0, needed });
        }
        Err(error) if is_not_granted(&error) => {
            check_walls(session).await?;
            return Err(OpenError::NotGranted { role: connect.role() });
        }
        Err(error) => return Err(store_error(error).into()),
    };
    fits(check.server_version, check.encoding.clone())?;
    if check.migration < needed {
        return Err(OpenError::NotInstalled { found: check.migration, needed });
    }
    if check.is_standby {
        return Err(OpenError::Standby);
    }
    if !check.draws_in_order {
        return Err(OpenError::PositionsUnordered);
    }
    if check.next_position <= check.highest_position {
        let (next, highest) = (check.next_position, check.highest_position);
        return Err(OpenError::PositionsBehind { next, highest });
    }
    Ok(check)
}

/// Refuses tables that have come without the sequence of positions.
async fn check_positions(session: &mut Session) -> Result<(), OpenError> {
    let check = session.statement(include_str!("sql/check_positions.sql"));
    let row = check.fetch_optional(&mut session.postgres).await.map_err(store_error)?;
    row.map(drop).ok_or(OpenError::PositionsMissing)
}

/// Refuses a database that a restore has left without walls.
async fn check_walls(session: &mut Session) -> Result<(), OpenError> {
    let check = session.statement(include_str!("sql/check_walls.sql"));
    let row = check.fetch_optional(&mut session.postgres).await.map_err(store_error)?;
    row.map(drop).ok_or(OpenError::RestoredWithoutRoles)
}

/// Refuses what every commit would be refused for. A pooler passes on no settings of ours, so they
/// are the role's.
async fn check_isolation(session: &mut Session, connect: &Connect) -> Result<(), OpenError> {
    let read = session.statement(include_str!("sql/check_isolation.sql"));
    let row = read.fetch_one(&mut session.postgres).await.map_err(store_error)?;
    let found = row::isolation(&row)?;
    if found != "read committed" {
        return Err(OpenError::Isolation { role: connect.role(), found });
    }
    Ok(())
}
