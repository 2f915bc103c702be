//! What must hold in the database, whatever happened, asked of the rows themselves by their owner.

use sequor_testserver::Database;
use sqlx::PgConnection;

/// Each fault with the query that finds its rows.
const STREAMS: [(&str, &str); 7] = [
    (
        "a stream has a hole in its versions",
        "SELECT FROM sequor.events GROUP BY tenant_id, aggregate, aggregate_id
         HAVING count(*) <> max(version) OR min(version) <> 1",
    ),
    (
        "a stream's stored version is not its last event's",
        "SELECT FROM sequor.streams AS stream
         FULL JOIN (SELECT tenant_id, aggregate, aggregate_id, max(version) AS version
                    FROM sequor.events GROUP BY 1, 2, 3) AS written
             USING (tenant_id, aggregate, aggregate_id)
         WHERE stream.version IS DISTINCT FROM written.version",
    ),
    (
        "a stream names another command than its last event's",
        "SELECT FROM sequor.streams AS stream
         LEFT JOIN sequor.events AS event USING (tenant_id, aggregate, aggregate_id, version)
         WHERE stream.command_id IS DISTINCT FROM event.command_id",
    ),
    (
        "a position was given twice",
        "SELECT FROM sequor.events GROUP BY position HAVING count(*) <> 1",
    ),
    (
        "a tenant is in several partitions",
        "SELECT FROM sequor.events GROUP BY tenant_id HAVING count(DISTINCT partition) <> 1",
    ),
    (
        "positions and versions of a stream disagree",
        "SELECT FROM (SELECT position, lag(position) OVER stream AS before FROM sequor.events
                      WINDOW stream AS (PARTITION BY tenant_id, aggregate, aggregate_id
                                        ORDER BY version)) AS event
         WHERE position <= before",
    ),
    (
        "a position lies beyond the sequence",
        "SELECT FROM sequor.events AS event, sequor.positions AS drawn
         WHERE event.position > drawn.last_value",
    ),
];

const COMMANDS: [(&str, &str); 7] = [
    (
        "a keyed command and its key are not one to one",
        "SELECT FROM (SELECT * FROM sequor.commands WHERE key IS NOT NULL) AS command
         FULL JOIN sequor.idempotency_keys AS key USING (tenant_id, key, command_id)
         WHERE command.name IS NULL OR key.state IS DISTINCT FROM 0",
    ),
    (
        "a key was used twice",
        "SELECT FROM sequor.commands GROUP BY tenant_id, key HAVING count(*) <> 1 OR key IS NULL",
    ),
    (
        "a key row has not got its command",
        "SELECT FROM sequor.idempotency_keys
         WHERE command_id = '00000000-0000-0000-0000-000000000000'",
    ),
    (
        "an event has no command",
        "SELECT FROM sequor.events AS event
         LEFT JOIN sequor.commands AS command USING (tenant_id, command_id)
         WHERE command.name IS NULL",
    ),
    (
        "a command has not exactly its events, or not the position of its last",
        "SELECT FROM sequor.commands AS command
         LEFT JOIN (SELECT tenant_id, command_id, count(*) AS events, max(position) AS position
                    FROM sequor.events GROUP BY 1, 2) AS written USING (tenant_id, command_id)
         WHERE written.events IS DISTINCT FROM (CASE command.name WHEN 'transfer' THEN 2 ELSE 1 END)
             OR command.position IS DISTINCT FROM written.position",
    ),
    (
        "a command names a version that it has not made",
        "SELECT FROM sequor.commands AS command CROSS JOIN json_array_elements(command.streams) AS made
         LEFT JOIN sequor.events AS event
             ON event.tenant_id = command.tenant_id AND event.aggregate = made ->> 0
             AND event.aggregate_id = made ->> 1 AND event.version = (made ->> 2)::bigint
         WHERE event.command_id IS DISTINCT FROM command.command_id",
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
pub(crate) async fn run(database: &Database) {
    let mut owner = database.session().await;
    for (fault, query) in STREAMS.into_iter().chain(COMMANDS).chain(OWN_ROWS) {
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
