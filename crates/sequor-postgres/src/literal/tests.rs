//! Literals come back from a server as what they were, under each of its settings that changes how
//! text is read.

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sequor_testserver::server;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::literal;

/// How a server may be set to read strings; `SJIS` takes a backslash for half of a letter.
const SETTINGS: [&str; 4] = [
    "SET standard_conforming_strings = on",
    "SET standard_conforming_strings = off; SET backslash_quote = on",
    "SET client_encoding = 'SJIS'; SET standard_conforming_strings = off",
    "SET DateStyle = 'German'; SET TimeZone = 'Asia/Kathmandu'; SET array_nulls = on",
];

/// Pieces that have a meaning somewhere on the way.
const PIECES: [&str; 20] = [
    "'", "''", "\\", "\\'", "\"", "{", "}", ",", "NULL", "null", "\n", "\r", "\t", "--", "/*",
    "$1", "$$", "é\\'", "表", "😀",
];

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => proptest::sample::select(PIECES.as_slice()).prop_map(str::to_owned),
        1 => "[^\u{0}]{0,8}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn time() -> impl Strategy<Value = DateTime<Utc>> {
    // From the year 1 to 9999.
    let micros = -62_135_596_800_000_000..253_402_300_800_000_000_i64;
    micros.prop_map(|micros| DateTime::from_timestamp_micros(micros).unwrap())
}

async fn read(session: &mut PgConnection, literals: &[String]) -> sqlx::postgres::PgRow {
    let sql = format!("SELECT {}", literals.join(", "));
    assert!(sql.is_ascii());
    sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(session).await.unwrap()
}

/// Runs a check on many values, under each setting of the server.
fn on_a_server<S: Strategy>(strategy: S, check: impl AsyncFn(&mut PgConnection, S::Value) + Copy) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for setting in SETTINGS {
        let session = runtime.block_on(async {
            let mut session = PgConnection::connect(&server::url()).await.unwrap();
            sqlx::raw_sql(setting).execute(&mut session).await.unwrap();
            std::cell::RefCell::new(session)
        });
        let mut runner = TestRunner::new(Config::with_cases(64));
        let run = runner.run(&strategy, |value| {
            runtime.block_on(check(&mut session.borrow_mut(), value));
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{setting}: {error}"));
    }
}

#[test]
fn text_comes_back() {
    on_a_server(hostile(), async |session, text| {
        // As bytes, since what comes back as text is not UTF-8 under each setting.
        let bytes = format!("convert_to({}, 'UTF8')", literal(&text));
        let row = read(session, &[bytes]).await;
        assert_eq!(row.get::<Vec<u8>, _>(0), text.as_bytes());
    });
}

#[test]
fn arrays_of_text_come_back() {
    let texts = proptest::collection::vec(proptest::option::of(hostile()), 0..6);
    on_a_server(texts, async |session, texts| {
        let each = format!(
            "ARRAY(SELECT convert_to(text, 'UTF8')
                FROM unnest({}) WITH ORDINALITY AS t (text, place) ORDER BY place)",
            literal(&texts)
        );
        let row = read(session, &[each]).await;
        let found: Vec<Option<Vec<u8>>> = row.get(0);
        let wanted: Vec<_> = texts.into_iter().map(|text| text.map(String::into_bytes)).collect();
        assert_eq!(found, wanted);
    });
}

#[test]
fn bytes_come_back() {
    let bytes = proptest::collection::vec(proptest::option::of(any::<Vec<u8>>()), 0..4);
    on_a_server(bytes, async |session, bytes| {
        let slices: Vec<Option<&[u8]>> = bytes.iter().map(Option::as_deref).collect();
        let first = slices.first().copied().flatten();
        let row = read(session, &[literal(&first), literal(&slices)]).await;
        assert_eq!(row.get::<Option<Vec<u8>>, _>(0).as_deref(), first);
        assert_eq!(row.get::<Vec<Option<Vec<u8>>>, _>(1), bytes);
    });
}

#[test]
fn numbers_ids_and_flags_come_back() {
    let values = any::<(i16, i32, i64, bool, Option<u128>, Vec<Option<i64>>)>();
    on_a_server(values, async |session, (small, middle, big, flag, id, numbers)| {
        let id = id.map(Uuid::from_u128);
        let literals = [
            literal(&small),
            literal(&middle),
            literal(&big),
            literal(&flag),
            literal(&id),
            literal(&vec![id, None]),
            literal(&numbers),
        ];
        let row = read(session, &literals).await;
        assert_eq!((row.get(0), row.get(1), row.get(2)), (small, middle, big));
        assert_eq!((row.get::<bool, _>(3), row.get::<Option<Uuid>, _>(4)), (flag, id));
        assert_eq!(row.get::<Vec<Option<Uuid>>, _>(5), [id, None]);
        assert_eq!(row.get::<Vec<Option<i64>>, _>(6), numbers);
    });
}

#[test]
fn times_come_back() {
    on_a_server(time(), async |session, time| {
        let micros = |literal: String| format!("(extract(epoch FROM {literal}) * 1000000)::bigint");
        let array = format!("({})[1]", literal(&vec![time]));
        let row = read(session, &[micros(literal(&time)), micros(array)]).await;
        assert_eq!(row.get::<i64, _>(0), time.timestamp_micros());
        assert_eq!(row.get::<i64, _>(1), time.timestamp_micros());
    });
}

#[test]
fn times_before_the_common_era_are_written_as_the_server_reads_them() {
    let time = DateTime::from_timestamp_micros(-63_517_824_000_000_000).unwrap();
    assert_eq!(literal(&time), "E'0044-03-15 00:00:00.000000+00 BC'::timestamptz");
}

#[test]
fn a_nul_reaches_the_server_which_refuses_it() {
    assert_eq!(literal(&"a\0b"), r"E'a\000b'::text");
}
