//! The pure parts, by example and by property.

mod canonical;
mod commit;
mod key;
mod unique;
