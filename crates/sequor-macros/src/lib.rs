//! sequor-macros
