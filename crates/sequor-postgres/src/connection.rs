//! One session, with the settings that sequor works at.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sequor_core::StoreError;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection as _, Executor as _, PgConnection, SqlSafeStr as _};

use crate::error::{is_deadlock, store_error};
use crate::settings::PostgresSettings;
use crate::statement::{Protocol, Statement, answered};

/// A session.
pub(crate) struct Session {
    pub(crate) postgres: PgConnection,
    /// How it is spoken to.
    pub(crate) protocol: Protocol,
    /// How long an answer of the server is waited for.
    pub(crate) limit: Duration,
    /// Whether user code has had it since it was cleaned.
    pub(crate) was_shared: bool,
    /// Counts them, for all sessions of the store.
    pub(crate) deadlocks: Deadlocks,
}

/// How often the server has ended a statement so that others could go on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlocks(Arc<AtomicU64>);

impl Deadlocks {
    /// Counts an error, if it is one of those.
    pub(crate) fn note(&self, error: &sqlx::Error) {
        self.0.fetch_add(u64::from(is_deadlock(error)), Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How sessions are made.
#[derive(Clone)]
pub(crate) struct Connect {
    options: PgConnectOptions,
    protocol: Protocol,
    /// How long connecting may take.
    wait: Duration,
    /// How long an answer is waited for.
    limit: Duration,
    deadlocks: Deadlocks,
}

/// How much longer than the server's own limit an answer is waited for.
const GRACE: Duration = Duration::from_secs(5);

impl Connect {
    pub(crate) fn new(settings: &PostgresSettings) -> Self {
        let (server, protocol) = match settings.pooled {
            false => (direct(settings), Protocol::Prepared),
            true => (pooled(settings), Protocol::Simple),
        };
        let options = server.application_name("sequor").disable_statement_logging();
        let (wait, limit) = (settings.wait_max, settings.statement_time_max + GRACE);
        Self { options, protocol, wait, limit, deadlocks: Deadlocks::default() }
    }

    /// Opens a session, and prepares what it will be asked for, so that the first call is as short
    /// as the later ones.
    pub(crate) async fn connect(&self, prepare: &[&'static str]) -> Result<Session, StoreError> {
        let connecting = async {
            let mut postgres = self.options.connect().await?;
            if self.protocol == Protocol::Prepared {
                for statement in prepare {
                    (&mut postgres).prepare(statement.into_sql_str()).await?;
                }
            }
            Ok(postgres)
        };
        let postgres = answered(self.wait, connecting).await.map_err(store_error)?;
        let (protocol, limit, deadlocks) = (self.protocol, self.limit, self.deadlocks.clone());
        Ok(Session { postgres, protocol, limit, was_shared: false, deadlocks })
    }

    /// What its sessions count.
    pub(crate) fn deadlocks(&self) -> &Deadlocks {
        &self.deadlocks
    }

    /// Whom the server will see.
    pub(crate) fn role(&self) -> String {
        self.options.get_username().to_owned()
    }
}

impl Session {
    /// A statement as this session sends it.
    pub(crate) fn statement<'q>(&self, sql: &'static str) -> Statement<'q> {
        Statement::new(sql, self.protocol, self.limit)
    }

    /// What a failed statement means among statements of users: deadlocks are counted.
    pub(crate) fn failed(&self, error: sqlx::Error) -> StoreError {
        self.deadlocks.note(&error);
        store_error(error)
    }

    /// Says goodbye. A session that is only dropped is noticed by the server a little later.
    pub(crate) async fn close(self) {
        if let Err(error) = self.postgres.close().await {
            tracing::debug!(%error, "a session did not close cleanly");
        }
    }
}

/// A session of the server, which brings its settings along.
fn direct(settings: &PostgresSettings) -> PgConnectOptions {
    let millis = |time: Duration| time.as_millis().to_string();
    let session = [
        ("default_transaction_isolation", "read committed".to_owned()),
        ("statement_timeout", millis(settings.statement_time_max)),
        ("idle_in_transaction_session_timeout", millis(settings.idle_time_max)),
        // A client that is gone while its statement waits for a lock is noticed.
        ("client_connection_check_interval", "1000".to_owned()),
        ("tcp_keepalives_idle", "10".to_owned()),
        ("tcp_user_timeout", millis(settings.statement_time_max)),
        // Compiling a plan costs more than any of our statements.
        ("jit", "off".to_owned()),
    ];
    settings.server.clone().options(session)
}

/// A session of a pooler: it passes on no settings, and keeps no statement.
fn pooled(settings: &PostgresSettings) -> PgConnectOptions {
    settings.server.clone().statement_cache_capacity(0).extra_float_digits(None)
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").field("role", &self.role()).finish_non_exhaustive()
    }
}
