//! The checksums of released migrations: what has run in somebody's database never changes.

/// Each released migration with the SHA-256 of its bytes in hexadecimal.
///
/// Empty until the first release. A release adds one line for each new migration
/// (`sha256sum migrations/*/*.sql`); a line never changes and never goes.
pub(crate) const RELEASED: &[(&str, &str)] = &[];
