use sqlx::{AssertSqlSafe, Row};

use crate::support::*;

/// Every statement that runs on tables which grow.
const STATEMENTS: [(&str, &str); 22] = [
    ("history", include_str!("../../src/sql/history.sql")),
    ("history_record", include_str!("../../src/sql/history_record.sql")),
    ("history_events", include_str!("../../src/sql/history_events.sql")),
    ("read_after", include_str!("../../src/sql/read_after.sql")),
    ("read_counters", include_str!("../../src/sql/read_counters.sql")),
    ("look_up_records", include_str!("../../src/sql/look_up_records.sql")),
    ("look_up_heads", include_str!("../../src/sql/look_up_heads.sql")),
    ("look_up_holders", include_str!("../../src/sql/look_up_holders.sql")),
    ("look_up_held", include_str!("../../src/sql/look_up_held.sql")),
    ("insert_commands", include_str!("../../src/sql/insert_commands.sql")),
    ("insert_keys", include_str!("../../src/sql/insert_keys.sql")),
    ("insert_events", include_str!("../../src/sql/insert_events.sql")),
    ("write_versions", include_str!("../../src/sql/write_versions.sql")),
    ("release_unique", include_str!("../../src/sql/release_unique.sql")),
    ("claim_unique", include_str!("../../src/sql/claim_unique.sql")),
    ("read_checkpoint", include_str!("../../src/sql/read_checkpoint.sql")),
    ("read_checkpoints", include_str!("../../src/sql/read_checkpoints.sql")),
    ("read_standing", include_str!("../../src/sql/read_standing.sql")),
    ("read_parked", include_str!("../../src/sql/read_parked.sql")),
    ("save_checkpoint", include_str!("../../src/sql/save_checkpoint.sql")),
    ("save_streams", include_str!("../../src/sql/save_streams.sql")),
    ("check_unchanged", include_str!("../../src/sql/check_unchanged.sql")),
];

/// What may be scanned: a list that the statement was given, a row of constants, and the few rows
/// of SQLite's own memory of positions.
fn may_be_scanned(step: &str) -> bool {
    ["jsonb_each", "wanted", "CONSTANT ROW", "sqlite_sequence", "(subquery", "pragma"]
        .iter()
        .any(|part| step.contains(part))
}

#[tokio::test]
async fn every_statement_finds_its_rows_by_an_index() {
    let fixture = Fixture::new().await;
    for n in 0..50 {
        fresh(fixture.commit(keyed(&format!("k{n}"), &format!("a{n}"), 0)).await);
    }
    // With and without statistics: an operator may run ANALYZE, or not.
    for statistics in ["SELECT 1", "ANALYZE"] {
        fixture.run(statistics).await;
        let mut raw = fixture.raw().await;
        for (name, sql) in STATEMENTS {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
            let rows = sqlx::query(explain).fetch_all(&mut raw).await.unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
            for step in &plan {
                // SQLite plans a look at the children of a new parent row, and takes it only when a
                // violation is outstanding, which the order of the inserts never leaves.
                let children = name == "insert_commands" && step == "SCAN idempotency_keys";
                let scans = step.starts_with("SCAN") && !may_be_scanned(step) && !children;
                // The log is read along its positions; that is a search, or a scan from the start.
                assert!(!scans, "{name}: {plan:#?}");
                assert!(!step.contains("TEMP B-TREE FOR ORDER BY"), "{name}: {plan:#?}");
            }
        }
    }
}
