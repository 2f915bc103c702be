//! A server that speaks another language answers the same: states and names of constraints count, and
//! never what a message says.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Committed, Transact, Transaction};
use sequor_core::{
    Name, Projection, ProjectionError, Projections, RecordState, StoreError, StoredEvent,
    UniqueChange, UniqueKey,
};
use sequor_postgres::{OpenError, PostgresSettings, PostgresStore};
use sequor_testserver::Database;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::support::{
    BUS, checked, commit, deposit, draft, fresh, key, keyed, not_tried, prepare, settings, tenant,
};

/// One of them is enough.
const LANGUAGES: [&str; 8] = [
    "de_DE.UTF-8",
    "fr_FR.UTF-8",
    "es_ES.UTF-8",
    "it_IT.UTF-8",
    "sv_SE.UTF-8",
    "ja_JP.UTF-8",
    "ru_RU.UTF-8",
    "uk_UA.UTF-8",
];

/// What the server says to a division by zero.
async fn complaint(database: &Database) -> String {
    let divide = sqlx::raw_sql("SELECT 1 / 0");
    let error = divide.execute(&mut database.session().await).await.unwrap_err();
    error.as_database_error().unwrap().message().to_owned()
}

/// Makes the server speak another language in a database, from the next session on; says whether it
/// can.
async fn translate(database: &Database) -> bool {
    let (mut owner, before) = (database.session().await, complaint(database).await);
    for language in LANGUAGES {
        let set = format!("ALTER DATABASE {} SET lc_messages = '{language}'", database.name());
        let set = sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut owner).await;
        if set.is_ok() && complaint(database).await != before {
            return true;
        }
    }
    false
}

/// A projection that runs a statement.
struct Runs(&'static str);

#[async_trait]
impl Projection<PgConnection> for Runs {
    fn name(&self) -> &str {
        "runs"
    }

    async fn project(
        &self,
        _event: &StoredEvent,
        connection: &mut PgConnection,
    ) -> Result<(), ProjectionError> {
        sqlx::raw_sql(self.0).execute(connection).await?;
        Ok(())
    }
}

/// What projections may do wrong, and whether the answer quotes no message of the server.
const WRONG: [(&str, bool); 9] = [
    ("SELECT 1 / 0", false),
    ("SELECT nothing", false),
    ("SELECT FROM sequor.migrations", false),
    ("INSERT INTO notes VALUES (sequor.tenant(), NULL)", false),
    ("INSERT INTO notes VALUES (sequor.tenant(), 'bad')", true),
    ("SELECT '\"\\u0000\"'::jsonb", true),
    ("SET LOCAL statement_timeout = 20; SELECT pg_sleep(10)", false),
    ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$", true),
    ("RESET ROLE", true),
];
const NOTES: &str = "CREATE TABLE notes (tenant_id uuid, text text NOT NULL,
        CONSTRAINT nothing_bad CHECK (text <> 'bad'));
    SELECT sequor.wall('notes')";

/// An answer without what may be a message of the server.
fn without_message(error: &StoreError) -> String {
    let whole = format!("{error:?}");
    let advice = whole.contains("sequor.wall");
    let kind: String = whole.chars().take_while(|char| char.is_alphanumeric()).collect();
    format!("{kind}, advice: {advice}")
}

/// What callers are told, whatever goes wrong.
async fn answers(database: &Database) -> Vec<String> {
    let mut told = Vec::new();
    database.make_role(BUS, "pg_read_all_settings").await;
    let refused = PostgresStore::open(settings(database)).await.unwrap_err();
    told.push(refused.to_string());
    prepare(database).await;
    database.run(NOTES).await;
    database.make_role("sequor_test_nobody", "pg_read_all_settings").await;
    let nobody = PostgresSettings::new(database.role("sequor_test_nobody"));
    let refused = PostgresStore::open(nobody).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotGranted { .. }), "{refused}");
    told.push(refused.to_string());
    let mut hasty = settings(database);
    hasty.lock_wait_max = Duration::from_millis(20);
    let store = PostgresStore::open(hasty).await.unwrap();
    fresh(commit(&store, keyed("k", "a", 0)).await);
    told.extend(rivals(&store).await);
    for (sql, is_ours) in WRONG {
        let projections = Projections(Arc::new([Arc::new(Runs(sql)) as _]));
        let error = store.commit(deposit("b", 0), &projections).await.unwrap_err();
        let answer = if is_ours { format!("{error:?}") } else { without_message(&error) };
        told.push(format!("{sql}: {answer}"));
    }
    told.push(format!("deadlocks: {}", store.stats().deadlocks));
    told
}

/// What those are told who come too late.
async fn rivals(store: &PostgresStore) -> Vec<String> {
    let mut told = Vec::new();
    let late = commit(store, deposit("a", 0)).await.unwrap_err();
    told.push(format!("{late:?}"));
    let known = commit(store, keyed("k", "a", 1)).await.unwrap();
    let is_known = |state| state == RecordState::Completed;
    told.push(format!("known: {}", matches!(known, Committed::Known(one) if is_known(one.state))));
    for id in ["c", "d"] {
        let mut one = draft(tenant(1), id, 0);
        let email = UniqueKey::new(Name::new("email").unwrap(), "x").unwrap();
        one.streams[0].unique.push(UniqueChange::Hold(email));
        told.push(format!("{:?}", commit(store, checked(one)).await.err()));
    }
    let mut holds = store.begin(tenant(1)).await.unwrap();
    assert_eq!(holds.claim(tenant(1), &key("held")).await.unwrap(), None);
    told.push(format!("{:?}", commit(store, keyed("held", "e", 0)).await.unwrap_err()));
    let mut waits = store.begin(tenant(1)).await.unwrap();
    told.push(format!("{:?}", waits.claim(tenant(1), &key("held")).await.unwrap_err()));
    told
}

#[tokio::test]
async fn a_server_that_speaks_another_language_is_understood() {
    let (english, other) = (Database::new().await, Database::new().await);
    english.run(&format!("ALTER DATABASE {} SET lc_messages = 'C'", english.name())).await;
    if !translate(&other).await {
        not_tried(format!("the server has messages in none of {}", LANGUAGES.join(", ")));
        return;
    }
    assert_ne!(complaint(&english).await, complaint(&other).await);
    assert_eq!(answers(&english).await, answers(&other).await);
}
