//! Reads what a batch is judged by: one trip, one statement a table, however many commits.

use futures_util::TryStreamExt;
use sequor_core::{Commit, StoreError, StreamId};
use sqlx::{Either, Executor, SqliteConnection};

use super::ledger::BatchLedger;
use super::rows::Rows;
use crate::error::{corrupt, store_error};
use crate::row;

/// The data version first: who changes the file afterwards is noticed by `check_unchanged.sql`.
const LOOK_UP: &str = concat!(
    include_str!("../sql/read_data_version.sql"),
    include_str!("../sql/look_up_records.sql"),
    include_str!("../sql/look_up_heads.sql"),
);

const LOOK_UP_UNIQUE: &str = concat!(
    include_str!("../sql/read_data_version.sql"),
    include_str!("../sql/look_up_records.sql"),
    include_str!("../sql/look_up_heads.sql"),
    include_str!("../sql/look_up_holders.sql"),
    include_str!("../sql/look_up_held.sql"),
);

/// What the file holds of everything that the commits name.
pub(crate) async fn look_up<'a>(
    commits: impl Iterator<Item = &'a Commit>,
    connection: &mut SqliteConnection,
) -> Result<BatchLedger, StoreError> {
    let mut ledger = BatchLedger::of(commits);
    let keys = ledger.wanted_records();
    let streams = ledger.wanted_heads();
    let unique = ledger.wanted_holders();
    let holders = ledger.wanted_held();
    let sql = if ledger.has_unique() { LOOK_UP_UNIQUE } else { LOOK_UP };
    let query = sqlx::query(sql)
        .bind(wanted(&keys, |rows, (tenant, key)| {
            rows.row().uuid(tenant.as_uuid()).text(key.as_str());
        }))
        .bind(wanted(&streams, |rows, (stream, is_maker_wanted)| {
            rows.stream(stream).number(u64::from(*is_maker_wanted));
        }))
        .bind(wanted(&unique, |rows, (tenant, unique)| {
            rows.row().uuid(tenant.as_uuid()).text(unique.scope.as_str()).text(&unique.value);
        }))
        .bind(wanted(&holders, stream_row));
    // Each statement ends with a `Left`, so these count the statements.
    let mut statement = 0;
    let mut steps = connection.fetch_many(query);
    while let Some(step) = steps.try_next().await.map_err(store_error)? {
        let row = match step {
            Either::Left(_) => {
                statement += 1;
                continue;
            }
            Either::Right(row) => row,
        };
        match statement {
            0 => ledger.data_version = row::data_version(&row)?,
            1 => {
                let key = at(&keys, row::wanted_record(&row)?)?;
                let record = row::record(&row, key.0)?;
                ledger.found_record(key.clone(), record);
            }
            2 => {
                let (place, version, maker) = row::wanted_head(&row)?;
                ledger.found_head(&at(&streams, place)?.0, version, maker);
            }
            3 => {
                let tenant = |place: usize| unique.get(place).map(|(tenant, _)| *tenant);
                let (place, holder) = row::wanted_holder(&row, tenant)?;
                ledger.found_holder(at(&unique, place)?.clone(), holder);
            }
            _ => {
                let (place, held) = row::wanted_held(&row)?;
                ledger.found_held(at(&holders, place)?, held);
            }
        }
    }
    Ok(ledger)
}

fn wanted<T>(wanted: &[T], append: impl Fn(&mut Rows, &T)) -> String {
    let mut rows = Rows::new();
    for one in wanted {
        append(&mut rows, one);
    }
    rows.into_text()
}

fn stream_row(rows: &mut Rows, stream: &StreamId) {
    rows.stream(stream);
}

fn at<T>(list: &[T], place: usize) -> Result<&T, StoreError> {
    list.get(place).ok_or_else(|| corrupt("a look-up answered what was not asked"))
}
