//! Stands in for the bindings of an old SQLite and hands on those of a new one.

#![no_std]

pub use new::*;
