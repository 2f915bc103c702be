//! What must hold in the file, whatever happened, asked of the rows themselves.

use std::path::Path;

use sqlx::Connection as _;

/// Each fault with the query that finds its rows.
const FAULTS: [(&str, &str); 8] = [
    (
        "a stream has a hole in its versions",
        "SELECT aggregate_id, count(*), max(version) FROM events
         GROUP BY tenant_id, aggregate, aggregate_id
         HAVING count(*) <> max(version) OR min(version) <> 1",
    ),
    (
        "a stream's stored version is not its last event's",
        "SELECT stream.aggregate_id FROM streams AS stream
         FULL JOIN (SELECT tenant_id, aggregate, aggregate_id, max(version) AS version
                    FROM events GROUP BY tenant_id, aggregate, aggregate_id) AS written
             USING (tenant_id, aggregate, aggregate_id)
         WHERE stream.version IS NOT written.version",
    ),
    (
        "positions and versions of a stream disagree",
        "SELECT one.position FROM events AS one JOIN events AS next
             ON next.tenant_id = one.tenant_id AND next.aggregate = one.aggregate
             AND next.aggregate_id = one.aggregate_id AND next.version = one.version + 1
         WHERE next.position <= one.position",
    ),
    (
        "a keyed command has no key row, or more than one",
        "SELECT command.number FROM commands AS command WHERE command.key IS NOT NULL AND 1 <> (
             SELECT count(*) FROM idempotency_keys AS key
             WHERE key.tenant_id = command.tenant_id AND key.key = command.key
                 AND key.command = command.number)",
    ),
    (
        "a key row has no command",
        "SELECT key.key FROM idempotency_keys AS key
         LEFT JOIN commands AS command ON command.number = key.command
         WHERE command.number IS NULL OR command.key IS NOT key.key
             OR command.tenant_id IS NOT key.tenant_id",
    ),
    (
        "an event has no command",
        "SELECT event.position FROM events AS event
         LEFT JOIN commands AS command ON command.number = event.command
         WHERE command.number IS NULL",
    ),
    (
        "a command has not exactly its events",
        "SELECT command.number FROM commands AS command
         LEFT JOIN (SELECT command, count(*) AS events FROM events GROUP BY command) AS written
             ON written.command = command.number
         WHERE written.events IS NOT (CASE command.name WHEN 'transfer' THEN 2 ELSE 1 END)",
    ),
    (
        "the projection is not the sum of the events",
        "SELECT sums.account FROM sums
         FULL JOIN (SELECT aggregate_id, sum(payload ->> 'cents') AS cents
                    FROM events GROUP BY aggregate_id) AS posted
             ON posted.aggregate_id = sums.account
         WHERE sums.cents IS NOT posted.cents",
    ),
];

/// Looks for every fault.
pub(crate) async fn run(path: &Path) {
    let url = format!("sqlite://{}?mode=ro", path.display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.expect("the file opens");
    let whole: String =
        sqlx::query_scalar("PRAGMA quick_check").fetch_one(&mut connection).await.expect("a check");
    assert_eq!(whole, "ok");
    for (fault, query) in FAULTS {
        let rows = sqlx::query(query).fetch_all(&mut connection).await.expect("an audit query");
        assert!(rows.is_empty(), "{fault}: {} rows", rows.len());
    }
    connection.close().await.expect("closed");
}
