//! AnkkaDatabase: the request for a database.

use ankka_crds::AnkkaDatabase;
use ankka_crds::resources::AnkkaDatabaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Blueprint, Database, labels};
use crate::ChildKind;

/// It has no owner: it stays, with the data, when the service goes.
pub(super) fn build(blueprint: &Blueprint<'_>, wanted: &Database<'_>) -> AnkkaDatabase {
    let metadata = ObjectMeta { owner_references: None, ..labels::metadata(blueprint, ChildKind::Database) };
    AnkkaDatabase { metadata, spec: AnkkaDatabaseSpec { credential_generation: wanted.asked }, status: None }
}
