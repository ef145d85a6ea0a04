//! A model of a gateway's controller: it says of each generation of the route whether it takes it.

use ankka_desired::{HttpRoute, RouteState};
use serde_json::{Value, json};

/// What is said of the route with this UID, at this generation.
#[derive(Clone, Debug)]
pub(super) struct Gateway {
    /// It takes routes.
    pub(super) accepts: bool,
    said: Option<(Value, Value, bool)>,
}

impl Default for Gateway {
    fn default() -> Self {
        Self { accepts: true, said: None }
    }
}

impl Gateway {
    /// One step. False when there is nothing to do.
    pub(super) fn turn(&mut self, route: Option<&Value>) -> bool {
        let said = route.map(|route| {
            let metadata = &route["metadata"];
            (metadata["uid"].clone(), metadata["generation"].clone(), self.accepts)
        });
        let changed = said != self.said;
        self.said = said;
        changed
    }

    /// The route with its status, as the operator reads it.
    pub(super) fn state(&self, route: &Value) -> RouteState {
        let mut route = route.clone();
        if let Some((uid, generation, accepts)) = &self.said
            && route["metadata"]["uid"] == *uid
        {
            let condition = |type_: &str| {
                json!({
                    "type": type_, "status": if *accepts { "True" } else { "False" }, "reason": "Told",
                    "message": "", "observedGeneration": generation,
                })
            };
            let parent = route["spec"]["parentRefs"][0].clone();
            let conditions = ["Accepted", "ResolvedRefs"].map(condition);
            route["status"] = json!({ "parents": [{ "parentRef": parent, "conditions": conditions }] });
        }
        let route: HttpRoute = serde_json::from_value(route).expect("an HTTPRoute");
        RouteState::of(&route)
    }
}
