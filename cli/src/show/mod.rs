//! How things look: tables, label and value lines, YAML, and problems in a file.

pub(crate) mod address;
pub(crate) mod lines;
pub(crate) mod problems;
pub(crate) mod service;
pub(crate) mod table;
pub(crate) mod yaml;
