//! The file, and the rounds in which the process that has it is killed.

mod audit;

use std::path::Path;

use sequor::sqlite::SqliteStore;
use sequor::{TenantId, async_trait};
use sqlx::SqliteConnection;

use crate::bank::Bank;
use crate::chance::Chance;
use crate::child::{Doubts, Job};
use crate::domain::Home;
use crate::retry::Counts;
use crate::working::Working;

const CREATE: &str = "
    CREATE TABLE sums (tenant_id BLOB, account TEXT, cents INTEGER NOT NULL,
        PRIMARY KEY (tenant_id, account)) STRICT;
    CREATE TABLE moved (tenant_id BLOB, account TEXT, cents INTEGER NOT NULL) STRICT";

#[async_trait]
impl Home for SqliteStore {
    async fn add(
        connection: &mut SqliteConnection,
        sql: &'static str,
        (tenant, account, cents): (TenantId, &str, i64),
    ) -> Result<(), sqlx::Error> {
        let row = sqlx::query(sql).bind(*tenant.as_uuid()).bind(account).bind(cents);
        row.execute(connection).await.map(drop)
    }
}

pub(crate) async fn open(path: &Path) -> Bank<SqliteStore> {
    Bank::new(SqliteStore::open_path(path).await.expect("the file opens"))
}

pub(crate) async fn run(chance: &mut Chance) {
    let rounds = crate::rounds(60);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("crash.db");
    let bank = open(&path).await;
    bank.store().set_up(CREATE).await.expect("tables");
    bank.store().close().await;
    let mut counts = Counts::default();
    for round in 0..rounds {
        let mut working =
            Working::start(&Job { place: format!("sqlite:{}", path.display()), round });
        working.wait_for(chance.below(400));
        let seen = working.kill();
        let bank = open(&path).await;
        counts.retry(&bank, (round, seen)).await;
        if round % 10 == 9 || round + 1 == rounds {
            audit::run(bank.store(), &path).await;
        }
        bank.store().close().await;
    }
    assert_eq!(counts.doubts, Doubts::default(), "nothing was wrong with the file");
    let Counts { kept, in_doubt, ran_now, .. } = counts;
    println!(
        "{rounds} kills: {kept} commands acknowledged and kept, {in_doubt} committed but not \
         acknowledged, {ran_now} not there and executed by the retry, none twice"
    );
}
