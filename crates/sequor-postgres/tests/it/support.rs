//! Databases and stores for the tests.

pub(crate) mod database;

pub(crate) use database::Database;
