//! The reference store under the suite that every store passes.

mod conformance;
