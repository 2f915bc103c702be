//! sequor-conformance
