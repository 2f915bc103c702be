//! What must hold in the database, whatever happened: the store's own audit, and what the domain of
//! this test adds to it, asked of the rows themselves by their owner.

use sequor::postgres::PostgresStore;
use sequor_testserver::Database;
use sqlx::PgConnection;

/// Each fault that only this test can know of, with the query that finds its rows.
const COMMANDS: [(&str, &str); 3] = [
    (
        "a key was used twice, or a command had none",
        "SELECT FROM sequor.commands GROUP BY tenant_id, key HAVING count(*) <> 1 OR key IS NULL",
    ),
    (
        "a command has not exactly its events",
        "SELECT FROM sequor.commands AS command
         LEFT JOIN (SELECT tenant_id, command_id, count(*) AS events
                    FROM sequor.events GROUP BY 1, 2) AS written USING (tenant_id, command_id)
         WHERE written.events IS DISTINCT FROM (CASE command.name WHEN 'transfer' THEN 2 ELSE 1 END)",
    ),
    (
        "an output is not the sum right after its command",
        "SELECT FROM (SELECT tenant_id, command_id, position,
                             sum(coalesce((payload ->> 'cents')::bigint, 0)) OVER stream AS cents
                      FROM sequor.events
                      WINDOW stream AS (PARTITION BY tenant_id, aggregate, aggregate_id
                                        ORDER BY version)) AS event
         JOIN (SELECT tenant_id, command_id, min(position) AS position FROM sequor.events
               GROUP BY 1, 2) AS first USING (tenant_id, command_id, position)
         JOIN sequor.commands AS command USING (tenant_id, command_id)
         WHERE command.output::text::bigint <> event.cents",
    ),
];

/// The projection works for one tenant only, the handler for both.
const OWN_ROWS: [(&str, &str); 3] = [
    (
        "the projection is not the sum of the events",
        "SELECT FROM sums
         FULL JOIN (SELECT tenant_id, aggregate_id, sum((payload ->> 'cents')::bigint) AS cents
                    FROM sequor.events
                    WHERE name = 'posted' AND tenant_id = '00000000-0000-0000-0000-000000000007'
                    GROUP BY 1, 2) AS posted
             ON posted.tenant_id = sums.tenant_id AND posted.aggregate_id = sums.account
         WHERE sums.cents IS DISTINCT FROM posted.cents",
    ),
    (
        "the handler's rows are not the sum of the transfers",
        "SELECT FROM (SELECT tenant_id, account, sum(cents) AS cents FROM moved GROUP BY 1, 2) AS moved
         FULL JOIN (SELECT event.tenant_id, aggregate_id, sum((event.payload ->> 'cents')::bigint)
                        AS cents
                    FROM sequor.events AS event
                    JOIN sequor.commands AS command USING (tenant_id, command_id)
                    WHERE command.name = 'transfer' GROUP BY 1, 2) AS posted
             ON posted.tenant_id = moved.tenant_id AND posted.aggregate_id = moved.account
         WHERE moved.cents IS DISTINCT FROM posted.cents",
    ),
    (
        "an account does not hold just its last name",
        "SELECT FROM sequor.unique_keys AS held
         FULL JOIN (SELECT DISTINCT ON (tenant_id, aggregate, aggregate_id)
                        tenant_id, aggregate, aggregate_id, payload ->> 'name' AS value
                    FROM sequor.events WHERE name = 'renamed'
                    ORDER BY tenant_id, aggregate, aggregate_id, version DESC) AS named
             USING (tenant_id, aggregate, aggregate_id, value)
         WHERE held.scope IS NULL OR named.value IS NULL OR held.scope <> 'account.name'",
    ),
];

/// Looks for every fault, and that there was something to look at.
pub(crate) async fn run(store: &PostgresStore, database: &Database) {
    crate::assert_clean(store).await;
    let mut owner = database.session().await;
    for (fault, query) in COMMANDS.into_iter().chain(OWN_ROWS) {
        let rows = sqlx::query(query).fetch_all(&mut owner).await;
        let rows = rows.unwrap_or_else(|error| panic!("{fault}: {error}"));
        assert!(rows.is_empty(), "{fault}: {} rows", rows.len());
    }
    for table in ["sums", "moved", "sequor.unique_keys", "sequor.idempotency_keys"] {
        assert!(count(table, &mut owner).await > 0, "{table} is empty");
    }
}

async fn count(table: &str, owner: &mut PgConnection) -> i64 {
    let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    sqlx::query_scalar(sql).fetch_one(owner).await.expect("a count")
}
