//! Stores, commits and projections for the tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sequor_core::commit::{CommitDraft, StreamDraft};
use sequor_core::ports::{CommitCommand, Committed};
use sequor_core::{
    AggregateId, CommandId, CommandMeta, Commit, CorrelationId, EventName, Fingerprint,
    IdempotencyKey, Json, Limits, Name, Projection, ProjectionError, Projections, Record,
    StoreError, StoredEvent, StreamId, TenantId, Timestamp, UniqueChange, UniqueKey, Version,
};
use sequor_sqlite::{SqliteSettings, SqliteStore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

/// A file of its own for a test, and a store on it.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) store: SqliteStore,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(|settings| settings).await
    }

    pub(crate) async fn with(change: impl FnOnce(SqliteSettings) -> SqliteSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = change(SqliteSettings::new(folder.path().join("store.db")));
        let store = SqliteStore::open(settings).await.unwrap();
        Self { folder, store }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("store.db")
    }

    /// A connection as the `sqlite3` shell would have it.
    pub(crate) async fn raw(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path());
        let options = options.pragma("ignore_check_constraints", "ON").foreign_keys(false);
        options.connect().await.unwrap()
    }

    pub(crate) async fn run(&self, sql: &str) {
        let mut raw = self.raw().await;
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut raw).await.unwrap();
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.raw().await).await.unwrap()
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.store.commit(commit, &Projections::none()).await
    }

    /// Every table agrees with every other.
    pub(crate) async fn check_whole(&self) {
        let events = self.count("SELECT count(*) FROM events").await;
        assert_eq!(events, self.count("SELECT coalesce(sum(version), 0) FROM streams").await);
        let orphans =
            "SELECT count(*) FROM events WHERE command NOT IN (SELECT number FROM commands)";
        assert_eq!(self.count(orphans).await, 0);
        let keyed = self.count("SELECT count(*) FROM commands WHERE key IS NOT NULL").await;
        assert_eq!(keyed, self.count("SELECT count(*) FROM idempotency_keys").await);
    }
}

pub(crate) fn fresh(committed: Result<Committed, StoreError>) -> Record {
    match committed {
        Ok(Committed::Fresh(record)) => record,
        other => panic!("not fresh: {other:?}"),
    }
}

pub(crate) fn tenant() -> TenantId {
    TenantId::new(Uuid::from_u128(0x018f_2f6e_0000_7000_8000_0000_0000_0001)).unwrap()
}

pub(crate) fn stream(id: &str) -> StreamId {
    let (aggregate, id) = (Name::new("account").unwrap(), AggregateId::new(id).unwrap());
    StreamId { tenant: tenant(), aggregate, id }
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    text.parse().unwrap()
}

/// One event on a stream at a version, without a key.
pub(crate) fn deposit(id: &str, expected: u64) -> Commit {
    draft(id, expected).check(&Limits::DEFAULT).unwrap()
}

/// The same under a key.
pub(crate) fn keyed(text: &str, id: &str, expected: u64) -> Commit {
    let mut draft = draft(id, expected);
    draft.meta.key = Some(key(text));
    draft.fingerprint = Some(Fingerprint::of("account.deposit", &draft.payload));
    draft.check(&Limits::DEFAULT).unwrap()
}

/// The same with a change of unique keys.
pub(crate) fn with_unique(id: &str, expected: u64, change: UniqueChange) -> Commit {
    let mut draft = draft(id, expected);
    draft.streams[0].unique.push(change);
    draft.check(&Limits::DEFAULT).unwrap()
}

pub(crate) fn email(value: &str) -> UniqueKey {
    UniqueKey::new(Name::new("email").unwrap(), value).unwrap()
}

pub(crate) fn draft(id: &str, expected: u64) -> CommitDraft {
    static IDS: AtomicU64 = AtomicU64::new(1);
    let id_number = Uuid::from_u128(IDS.fetch_add(1, Ordering::Relaxed).into());
    let payload = Json::of(&("deposit", 100)).unwrap();
    CommitDraft {
        meta: CommandMeta {
            command_id: CommandId(id_number),
            tenant: tenant(),
            key: None,
            actor: None,
            correlation_id: CorrelationId(id_number),
            causation_id: None,
            time: Timestamp::from_micros(1_700_000_000_000_000).unwrap(),
        },
        name: Name::new("account.deposit").unwrap(),
        fingerprint: None,
        output: Json::of(&()).unwrap(),
        streams: vec![StreamDraft {
            stream: stream(id),
            expected: Version::new(expected),
            after: None,
            unique: Vec::new(),
        }],
        events: vec![(
            0,
            EventName { name: "account.deposited", schema_version: 1 },
            payload.clone(),
        )],
        payload,
    }
}

/// A projection that fails for one stream, in a way of choice.
pub(crate) struct Picky {
    pub(crate) refuses: &'static str,
    pub(crate) how: How,
}

#[derive(Clone, Copy)]
pub(crate) enum How {
    Errs,
    Panics,
    Commits,
    RollsBack,
}

#[async_trait::async_trait]
impl Projection<SqliteConnection> for Picky {
    fn name(&self) -> &str {
        "picky"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut SqliteConnection,
    ) -> Result<(), ProjectionError> {
        sqlx::query("CREATE TABLE IF NOT EXISTS seen (position INTEGER PRIMARY KEY)")
            .execute(&mut *connection)
            .await?;
        sqlx::query("INSERT INTO seen (position) VALUES (?)")
            .bind(i64::try_from(event.position.get())?)
            .execute(&mut *connection)
            .await?;
        if event.stream.id.as_str() != self.refuses {
            return Ok(());
        }
        match self.how {
            How::Errs => return Err("refused".into()),
            How::Panics => panic!("a projection panics on purpose"),
            // A projection that swallows what it gets.
            How::Commits => drop(sqlx::raw_sql("COMMIT").execute(connection).await),
            How::RollsBack => drop(sqlx::raw_sql("ROLLBACK; BEGIN").execute(connection).await),
        }
        Ok(())
    }
}

pub(crate) fn picky(refuses: &'static str, how: How) -> Projections<SqliteConnection> {
    Projections(Arc::new([Arc::new(Picky { refuses, how })]))
}
