//! sequor
