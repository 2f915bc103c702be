//! Stores, commits and sessions for the tests.

use std::fmt::Display;
use std::io::{Write as _, stderr};
use std::sync::atomic::{AtomicU64, Ordering};

use sequor_core::commit::{CommitDraft, StreamDraft};
use sequor_core::ports::{CommitCommand, Committed, HistoryRequest, ReadHistory};
use sequor_core::{
    AggregateId, CommandId, CommandMeta, Commit, CorrelationId, EventName, Fingerprint,
    IdempotencyKey, Json, Limits, Name, Projections, Record, StoreError, StoredEvent, StreamId,
    TenantId, Timestamp, Version,
};
use sequor_postgres::{PostgresSettings, PostgresStore, install};
use sequor_testserver::{Database, Proxy, server};
use sqlx::{ConnectOptions, PgConnection};
use uuid::Uuid;

/// The role that stores work as: it owns nothing, and is a member of sequor's two roles.
pub(crate) const BUS: &str = "sequor_test_bus";

/// Says what cannot be had on this machine, past what the tests' runner keeps to itself.
pub(crate) fn not_tried(why: impl Display) {
    stderr().write_all(format!("not tried: {why}\n").as_bytes()).ok();
}

/// A database with sequor's tables.
pub(crate) async fn installed() -> Database {
    let database = Database::new().await;
    prepare(&database).await;
    database
}

/// Brings sequor's tables and the role of the bus into a database.
pub(crate) async fn prepare(database: &Database) {
    install(&PostgresSettings::new(database.owner())).await.unwrap();
    database.make_role(BUS, "sequor_app, sequor_system").await;
}

/// How the bus reaches it.
pub(crate) fn settings(database: &Database) -> PostgresSettings {
    PostgresSettings::new(database.role(BUS))
}

pub(crate) async fn open(database: &Database) -> PostgresStore {
    PostgresStore::open(settings(database)).await.unwrap()
}

/// A session of another role than the owner.
pub(crate) async fn session_as(database: &Database, role: &str) -> PgConnection {
    database.role(role).connect().await.unwrap()
}

/// What the owner counts.
pub(crate) async fn count(database: &Database, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut database.session().await).await.unwrap()
}

/// What the first tenant's key is remembered for.
pub(crate) async fn record(store: &PostgresStore, text: &str) -> Option<Record> {
    let key = key(text);
    let request = HistoryRequest { tenant: tenant(1), key: Some(&key), stream: None };
    store.history(request).await.unwrap().record
}

/// All events of a stream of the first tenant.
pub(crate) async fn events(store: &PostgresStore, id: &str) -> Vec<StoredEvent> {
    let stream = stream(id);
    let after = Some((&stream, Version::NONE));
    let request = HistoryRequest { tenant: tenant(1), key: None, stream: after };
    store.history(request).await.unwrap().events
}

pub(crate) async fn commit(store: &PostgresStore, commit: Commit) -> Result<Committed, StoreError> {
    store.commit(commit, &Projections::none()).await
}

pub(crate) fn fresh(committed: Result<Committed, StoreError>) -> Record {
    match committed {
        Ok(Committed::Fresh(record)) => record,
        other => panic!("not fresh: {other:?}"),
    }
}

pub(crate) fn tenant(number: u128) -> TenantId {
    TenantId::new(Uuid::from_u128(0x018f_2f6e_0000_7000_8000_0000_0000_0000 + number)).unwrap()
}

pub(crate) fn stream(id: &str) -> StreamId {
    stream_of(tenant(1), id)
}

pub(crate) fn stream_of(tenant: TenantId, id: &str) -> StreamId {
    let (aggregate, id) = (Name::new("account").unwrap(), AggregateId::new(id).unwrap());
    StreamId { tenant, aggregate, id }
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    text.parse().unwrap()
}

/// One event on a stream at a version, without a key.
pub(crate) fn deposit(id: &str, expected: u64) -> Commit {
    checked(draft(tenant(1), id, expected))
}

/// The same under a key.
pub(crate) fn keyed(text: &str, id: &str, expected: u64) -> Commit {
    checked(with_key(draft(tenant(1), id, expected), text))
}

pub(crate) fn with_key(mut draft: CommitDraft, text: &str) -> CommitDraft {
    draft.meta.key = Some(key(text));
    draft.fingerprint = Some(Fingerprint::of("account.deposit", &draft.payload));
    draft
}

pub(crate) fn checked(draft: CommitDraft) -> Commit {
    draft.check(&Limits::DEFAULT).unwrap()
}

pub(crate) fn draft(tenant: TenantId, id: &str, expected: u64) -> CommitDraft {
    static IDS: AtomicU64 = AtomicU64::new(1);
    let id_number = Uuid::from_u128(IDS.fetch_add(1, Ordering::Relaxed).into());
    let payload = Json::of(&("deposit", 100)).unwrap();
    CommitDraft {
        meta: CommandMeta {
            command_id: CommandId(id_number),
            tenant,
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
            stream: stream_of(tenant, id),
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

/// A store behind a proxy.
pub(crate) async fn proxied(database: &Database) -> (Proxy, PostgresStore) {
    let proxy = Proxy::start(&server::url()).unwrap();
    let through = database.role(BUS).host("127.0.0.1").port(proxy.port());
    let store = PostgresStore::open(PostgresSettings::new(through)).await.unwrap();
    (proxy, store)
}

/// A session as handlers and projections have it, for a tenant.
pub(crate) async fn user_session(database: &Database, tenant: TenantId) -> PgConnection {
    let mut session = session_as(database, BUS).await;
    let begin = format!(
        "BEGIN; SET LOCAL ROLE sequor_app; SET LOCAL sequor.tenant = '{}'",
        tenant.as_uuid()
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(begin)).execute(&mut session).await.unwrap();
    session
}
