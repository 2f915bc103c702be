//! What must hold in the file, whatever happened: the store's own audit, and what the domain of this
//! test adds to it, asked of the rows themselves.

use std::path::Path;

use sequor::sqlite::SqliteStore;
use sqlx::Connection as _;

/// Each fault that only this test can know of, with the query that finds its rows.
const FAULTS: [(&str, &str); 5] = [
    (
        "a command has not exactly its events",
        "SELECT command.number FROM commands AS command
         LEFT JOIN (SELECT command, count(*) AS events FROM events GROUP BY command) AS written
             ON written.command = command.number
         WHERE written.events IS NOT (CASE command.name WHEN 'transfer' THEN 2 ELSE 1 END)",
    ),
    (
        "an output is not the sum right after its command",
        "SELECT command.number FROM (
             SELECT command, position, sum(coalesce(payload ->> 'cents', 0)) OVER (
                 PARTITION BY tenant_id, aggregate, aggregate_id ORDER BY version) AS cents
             FROM events) AS event
         JOIN (SELECT command, min(position) AS position FROM events GROUP BY command) AS first
             USING (command, position)
         JOIN commands AS command ON command.number = event.command
         WHERE CAST(command.output AS INTEGER) <> event.cents",
    ),
    (
        "the projection is not the sum of the events of its tenant",
        "SELECT sums.account FROM sums
         FULL JOIN (SELECT tenant_id, aggregate_id, sum(payload ->> 'cents') AS cents
                    FROM events WHERE name = 'posted' AND hex(tenant_id) LIKE '%7'
                    GROUP BY tenant_id, aggregate_id) AS posted
             ON posted.tenant_id = sums.tenant_id AND posted.aggregate_id = sums.account
         WHERE sums.cents IS NOT posted.cents",
    ),
    (
        "the handler's rows are not the sum of the transfers",
        "SELECT moved.account FROM (SELECT tenant_id, account, sum(cents) AS cents FROM moved
                                    GROUP BY tenant_id, account) AS moved
         FULL JOIN (SELECT event.tenant_id, aggregate_id, sum(event.payload ->> 'cents') AS cents
                    FROM events AS event JOIN commands AS command ON command.number = event.command
                    WHERE command.name = 'transfer'
                    GROUP BY event.tenant_id, aggregate_id) AS posted
             ON posted.tenant_id = moved.tenant_id AND posted.aggregate_id = moved.account
         WHERE moved.cents IS NOT posted.cents",
    ),
    (
        "an account does not hold just its last name",
        "SELECT held.value FROM unique_keys AS held
         FULL JOIN (SELECT tenant_id, aggregate_id, payload ->> 'name' AS value, max(version)
                    FROM events WHERE name = 'renamed' GROUP BY tenant_id, aggregate_id) AS named
             ON named.tenant_id = held.tenant_id AND named.aggregate_id = held.aggregate_id
             AND named.value = held.value
         WHERE held.value IS NULL OR named.value IS NULL",
    ),
];

/// Looks for every fault.
pub(crate) async fn run(store: &SqliteStore, path: &Path) {
    crate::assert_clean(store).await;
    let url = format!("sqlite://{}?mode=ro", path.display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.expect("the file opens");
    for (fault, query) in FAULTS {
        let rows = sqlx::query(query).fetch_all(&mut connection).await.expect("an audit query");
        assert!(rows.is_empty(), "{fault}: {} rows", rows.len());
    }
    connection.close().await.expect("closed");
}
