//! Who may move which checkpoint: rows with a term, on the server's clock.

use std::time::Duration;

use async_trait::async_trait;
use sequor_core::StoreError;
use sequor_core::checkpoint::{CheckpointId, Lease, Release};
use sequor_core::ports::KeepLeases;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::row;
use crate::row::partition_number;
use crate::statement::Statement;
use crate::store::PostgresStore;

#[async_trait]
impl KeepLeases for PostgresStore {
    async fn lease(
        &self,
        checkpoint: &CheckpointId,
        owner: Uuid,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let take = |statement: Statement<'static>| {
            statement
                .bind(checkpoint.projection.to_string())
                .bind(row::schema(checkpoint.version))
                .bind(partition_number(checkpoint.partition))
                .bind(owner)
                .bind(millis(ttl))
        };
        let row = self.ask_one(include_str!("sql/lease.sql"), take).await?;
        let lease = |term| Lease { checkpoint: checkpoint.clone(), term };
        Ok(row::checkpoint::term(&row)?.map(lease))
    }

    async fn check_in(
        &self,
        release: &Release,
        runner: Uuid,
        ttl: Duration,
    ) -> Result<usize, StoreError> {
        let check_in = |statement: Statement<'static>| {
            statement
                .bind(release.projection.to_string())
                .bind(row::schema(release.version))
                .bind(runner)
                .bind(millis(ttl))
        };
        let row = self.ask_one(include_str!("sql/check_in.sql"), check_in).await?;
        row::checkpoint::runners(&row)
    }
}

impl PostgresStore {
    /// All rows of one statement, in a transaction of its own.
    pub(crate) async fn ask(
        &self,
        sql: &'static str,
        bind: impl FnOnce(Statement<'static>) -> Statement<'static>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let mut loan = self.pool().lend().await?;
        let session = loan.session();
        let asked = bind(session.statement(sql)).fetch_all(&mut session.postgres).await;
        let asked = asked.map_err(|error| session.failed(error));
        loan.give_back(&asked);
        asked
    }

    /// The one row of a statement.
    async fn ask_one(
        &self,
        sql: &'static str,
        bind: impl FnOnce(Statement<'static>) -> Statement<'static>,
    ) -> Result<PgRow, StoreError> {
        let row = self.ask(sql, bind).await?.into_iter().next();
        row.ok_or_else(|| crate::error::corrupt("a function has answered nothing"))
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
