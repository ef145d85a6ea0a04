//! The address outside the cluster: whether a service gets one, which, and how its route is doing.

use ankka_crds::resources::Condition;
use ankka_crds::{AnkkaService, AnkkaServiceStatus, exposure};

use crate::decide::is_going;
use crate::facts::created;
use crate::http_route::{HttpRoute, ParentReference, ParentStatus, RouteCondition};
use crate::settings::Gateway;
use crate::{ChildKind, Facts, text};

/// Why no route can be made in a cluster without the kind.
const NO_GATEWAY_API: &str = "the cluster has no Gateway API (gateway.networking.k8s.io/v1 HTTPRoute), so no route can be made; once an administrator has installed it, the route is made without further ado";

/// What of routes matters to a decision, beside the service itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteFacts<'a> {
    /// The cluster knows the kind HTTPRoute.
    pub served: bool,
    /// How the object is doing that has the name of the service's route.
    pub state: Option<&'a RouteState>,
    /// What other services claim the same host name, which need not be in the same project.
    pub rivals: &'a [Claim],
}

/// How a route is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteState {
    /// When it was made, RFC 3339.
    pub created: String,
    /// How each listener's controller sees it.
    pub parents: Vec<(ParentReference, Judgement)>,
}

/// How a route is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Judgement {
    /// Nobody has said anything about what it is now.
    #[default]
    Pending,
    /// It is in use.
    Accepted,
    /// It is not, and why.
    Rejected(String),
}

impl RouteState {
    /// What of a route the status needs.
    pub fn of(route: &HttpRoute) -> Self {
        let metadata = &route.metadata;
        let generation = metadata.generation;
        let parents = route.status.iter().flat_map(|status| &status.parents);
        Self {
            created: created(metadata),
            parents: parents.map(|parent| (parent.parent_ref.clone(), judge(parent, generation))).collect(),
        }
    }

    /// How this gateway sees the route.
    fn by(&self, gateway: &Gateway) -> Judgement {
        let ours = self.parents.iter().filter(|(parent, _)| gateway.is(parent)).map(|(_, judgement)| judgement);
        let weight = |judgement: &&Judgement| match judgement {
            Judgement::Accepted => 2,
            Judgement::Rejected(_) => 1,
            Judgement::Pending => 0,
        };
        ours.max_by_key(weight).cloned().unwrap_or_default()
    }
}

/// What is said about another generation of the route does not count. A controller that names none is believed.
fn judge(parent: &ParentStatus, generation: Option<i64>) -> Judgement {
    let current =
        |condition: &&RouteCondition| condition.observed_generation.is_none_or(|observed| Some(observed) == generation);
    let said = ["Accepted", "ResolvedRefs"]
        .map(|type_| parent.conditions.iter().filter(current).find(|condition| condition.type_ == type_));
    let refused = said.iter().flatten().find(|condition| condition.status == "False");
    match refused {
        Some(refused) => Judgement::Rejected(text::reason(&refused.reason, Some(&refused.message))),
        None if said.iter().all(|said| said.is_some_and(|condition| condition.status == "True")) => Judgement::Accepted,
        None => Judgement::Pending,
    }
}

/// A service's claim to its host name. The lesser one wins: the older route, else the older service, else the lower UID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    has_no_route: bool,
    route_created: String,
    service_created: String,
    uid: String,
}

impl Claim {
    /// What a service claims; `route` is the one that it owns. None when it has no route and asks for none.
    pub fn of(service: &AnkkaService, route: Option<&RouteState>) -> Option<Self> {
        let metadata = &service.metadata;
        let asks = service.spec.exposed && serves_http(service) && metadata.deletion_timestamp.is_none();
        (asks || route.is_some()).then(|| Self {
            has_no_route: route.is_none(),
            route_created: route.map(|route| route.created.clone()).unwrap_or_default(),
            service_created: created(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
        })
    }
}

fn serves_http(service: &AnkkaService) -> bool {
    service.spec.service.http != Some(false)
}

/// The route a service wants.
#[derive(Clone, Debug)]
pub struct Route<'a> {
    /// Its host name.
    pub host: String,
    /// The address people use.
    pub url: String,
    /// The gateway it hangs on.
    pub gateway: &'a Gateway,
}

/// Whether a service wants a route.
#[derive(Clone, Debug)]
pub(crate) enum Exposure<'a> {
    /// It is not exposed.
    Closed,
    /// It is exposed and cannot have a route, and why.
    Refused(String),
    /// It is exposed.
    Open(Route<'a>),
}

impl<'a> Exposure<'a> {
    /// Judges the service of the project. Nothing is asked about a service that is not exposed.
    pub(crate) fn of(facts: &Facts<'a>, project: &str) -> Self {
        if !facts.service.spec.exposed {
            return Self::Closed;
        }
        let domain = facts.settings.domain.as_ref();
        let host = exposure::host(project, facts.name(), serves_http(facts.service), domain);
        let (host, domain) = match (host, domain) {
            (Ok(host), Some(domain)) => (host, domain),
            (Ok(_), None) => return Self::Refused(exposure::Refusal::NoBaseDomain.to_string()),
            (Err(refusal), _) => return Self::Refused(refusal.to_string()),
        };
        if !facts.route.served {
            return Self::Refused(NO_GATEWAY_API.to_owned());
        }
        let own = Claim::of(facts.service, owned(facts));
        if facts.route.rivals.iter().min().is_some_and(|rival| own.is_none_or(|own| *rival < own)) {
            // Whose it is stays unsaid: it may be a project that the reader must not know of.
            return Self::Refused(format!(
                "the host name '{host}' belongs to another service, which was exposed earlier; a service of another name gets an address of its own"
            ));
        }
        let url = exposure::url(&host, domain);
        Self::Open(Route { host, url, gateway: &facts.settings.gateway })
    }

    pub(crate) fn route(&self) -> Option<&Route<'a>> {
        match self {
            Self::Open(route) => Some(route),
            _ => None,
        }
    }
}

/// How the route is doing that this service owns.
fn owned<'a>(facts: &Facts<'a>) -> Option<&'a RouteState> {
    let seen = facts.children.get(&ChildKind::HttpRoute).filter(|seen| seen.owned_by(facts.uid()) && !seen.terminating);
    seen.and(facts.route.state)
}

/// What the status says about an exposed service's route.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    judgement: Judgement,
    url: Option<String>,
}

impl Report {
    /// Of a service whose children are being made what they should be; `writes` says whether its route is among them.
    pub(crate) fn of_running(facts: &Facts<'_>, exposure: &Exposure<'_>, writes: bool) -> Option<Self> {
        match exposure {
            Exposure::Closed => None,
            Exposure::Refused(why) => Some(Self::rejected(why)),
            Exposure::Open(route) => {
                let state = owned(facts).filter(|_| !writes);
                let judgement = state.map(|state| state.by(route.gateway)).unwrap_or_default();
                Some(Self { judgement, url: Some(route.url.clone()) })
            }
        }
    }

    /// Of a service of which nothing is started: an address is only said where a route is.
    pub(crate) fn of_held(facts: &Facts<'_>, exposure: &Exposure<'_>) -> Option<Self> {
        let report = Self::of_running(facts, exposure, false)?;
        let (name, uid) = (facts.name(), facts.uid());
        let strange = facts.children.get(&ChildKind::HttpRoute).filter(|seen| !is_going(seen, name, uid));
        Some(match (exposure, owned(facts), strange) {
            (Exposure::Open(_), None, Some(_)) => {
                Self::rejected(&text::name_taken(ChildKind::HttpRoute, name, facts.namespace()))
            }
            (_, None, _) => Self { url: None, ..report },
            (_, Some(_), _) => report,
        })
    }

    /// No route, and why.
    pub(crate) fn rejected(why: &str) -> Self {
        Self { judgement: Judgement::Rejected(why.to_owned()), url: None }
    }

    fn word(&self) -> String {
        match &self.judgement {
            Judgement::Pending => "pending".to_owned(),
            Judgement::Accepted => "accepted".to_owned(),
            Judgement::Rejected(why) => format!("rejected: {why}"),
        }
    }

    fn condition(&self, generation: Option<i64>) -> Condition {
        let (status, reason, message) = match &self.judgement {
            Judgement::Pending => ("Unknown", "Pending", ""),
            Judgement::Accepted => ("True", "Accepted", ""),
            Judgement::Rejected(why) => ("False", "Rejected", why.as_str()),
        };
        Condition {
            type_: "RouteAccepted".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: generation,
            last_transition_time: String::new(),
        }
    }

    /// The status with what there is to say about the route. A rejected route leaves the service its address inside the
    /// cluster, and its word: the instances run as before.
    pub(crate) fn tell(report: Option<&Self>, mut status: AnkkaServiceStatus) -> AnkkaServiceStatus {
        let Some(report) = report else { return status };
        status.route = Some(report.word());
        status.conditions.push(report.condition(status.observed_generation));
        match (&report.judgement, &report.url) {
            (Judgement::Rejected(why), _) => {
                let rejected = format!("route rejected: {why}");
                status.detail = Some(match status.detail {
                    Some(detail) if detail.contains(why.as_str()) => detail,
                    Some(detail) => format!("{detail}; {rejected}"),
                    None => rejected,
                });
            }
            (_, Some(url)) => status.address = Some(url.clone()),
            (_, None) => {}
        }
        status
    }
}
