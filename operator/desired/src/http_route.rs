//! HTTPRoute of the Gateway API: the few of its fields that we write and read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, NamespaceResourceScope, Resource};
use serde::{Deserialize, Serialize};

/// Which requests a gateway hands to which Service.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct HttpRoute {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(default)]
    pub spec: HttpRouteSpec,
    /// What the gateway's controller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<HttpRouteStatus>,
}

impl Resource for HttpRoute {
    const API_VERSION: &'static str = "gateway.networking.k8s.io/v1";
    const GROUP: &'static str = "gateway.networking.k8s.io";
    const KIND: &'static str = "HTTPRoute";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "httproutes";
    type Scope = NamespaceResourceScope;
}

impl Metadata for HttpRoute {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// What is wanted.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteSpec {
    /// The listeners it hangs on.
    #[serde(default)]
    pub parent_refs: Vec<ParentReference>,
    /// The host names it answers to.
    #[serde(default)]
    pub hostnames: Vec<String>,
    /// Where requests go. A rule that matches nothing in particular matches all.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// One listener of a Gateway.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ParentReference {
    /// The Gateway's namespace; the route's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The Gateway's name.
    #[serde(default)]
    pub name: String,
    /// The listener's name; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
}

/// Where requests go.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The Services that answer.
    #[serde(default)]
    pub backend_refs: Vec<BackendReference>,
}

/// A Service of the route's own namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendReference {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// What the controllers of gateways say.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRouteStatus {
    /// One entry a listener, as its controller sees it.
    #[serde(default)]
    pub parents: Vec<ParentStatus>,
}

/// How one listener's controller sees the route.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ParentStatus {
    /// The listener.
    #[serde(default)]
    pub parent_ref: ParentReference,
    /// `Accepted`, `ResolvedRefs` and others.
    #[serde(default)]
    pub conditions: Vec<RouteCondition>,
}

/// One condition of a route.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RouteCondition {
    /// Its type.
    #[serde(default, rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
    /// Why, for programs.
    #[serde(default)]
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
    /// The `metadata.generation` that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
