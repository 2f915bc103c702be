//! sequor-sqlite
