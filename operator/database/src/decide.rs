//! The decision: what is missing on the server, which login the Secret is to hold, and which others are to end.

use std::collections::BTreeMap;

use ankka_crds::{AnkkaDatabase, resources::AnkkaDatabaseStatus};

use crate::{
    names::Names,
    server::{Observed, RoleSeen, Step},
};

/// Everything one decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What is asked for.
    pub database: &'a AnkkaDatabase,
    /// The names of what belongs to it.
    pub names: &'a Names,
    /// What is on the server.
    pub observed: &'a Observed,
    /// Tells the server's key from others.
    pub key: &'a str,
    /// The cluster that is asked for a database.
    pub cluster: &'a str,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The status says nothing of the database yet: that it will be made, or was found, is written down before anything is
    /// done.
    pub intent: Option<Intent>,
    /// What is missing on the server, in order.
    pub steps: Vec<Step>,
    /// Generation of the login that the Secret is to hold.
    pub generation: i64,
    /// Logins to end once the Secret holds that one.
    pub end: Vec<String>,
    /// Logins that end already, by generation.
    pub ending: BTreeMap<i64, String>,
}

/// What is about to be done about a database that the status does not know yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The database is there already, with its data.
    pub recovered: bool,
}

/// Why nothing is done: somebody has to act first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// One word for programs.
    pub reason: &'static str,
    /// What stands in the way, and what to do about it.
    pub detail: String,
}

/// Decides about one database.
///
/// # Errors
/// When what is on the server is not what a step of ours could have left there.
pub fn decide(facts: &Facts<'_>) -> Result<Plan, Obstacle> {
    let none = AnkkaDatabaseStatus::default();
    let status = facts.database.status.as_ref().unwrap_or(&none);
    refuse(facts, status)?;
    let logins = logins(facts);
    let generation = generation(facts, status, &logins)?;
    let steps = steps(facts, status, &logins, generation);
    let others = || logins.iter().filter(|(other, role)| **other != generation && role.login);
    Ok(Plan {
        intent: status.database.is_none().then_some(Intent { recovered: facts.observed.database.is_some() }),
        steps,
        generation,
        end: others().filter(|(_, role)| role.ends_at.is_none()).map(|(_, role)| role.name.clone()).collect(),
        ending: others().filter_map(|(other, role)| Some((*other, role.ends_at.clone()?))).collect(),
    })
}

/// The roles on the server that are logins of this service, by generation.
fn logins<'a>(facts: &'a Facts<'_>) -> BTreeMap<i64, &'a RoleSeen> {
    let all = facts.observed.owner.iter().chain(&facts.observed.logins);
    all.filter_map(|role| Some((facts.names.generation(&role.name)?, role))).collect()
}

fn refuse(facts: &Facts<'_>, status: &AnkkaDatabaseStatus) -> Result<(), Obstacle> {
    let name = &facts.names.database;
    let refused = |reason, detail| Err(Obstacle { reason, detail });
    match facts.observed.cluster.as_deref() {
        Some(cluster) if cluster == facts.cluster => {}
        Some(other) => return refused("OtherCluster", of_another(facts.cluster, other)),
        None => {
            let detail = "table ankka.installation in database 'ankka' is empty; drop that table, and it is made anew";
            return refused("NoCluster", detail.to_owned());
        }
    }
    if let Some(role) = logins(facts).values().find(|role| role.superuser) {
        let role = &role.name;
        return refused(
            "RoleIsSuperuser",
            format!("role '{role}' is a superuser, which no service may be: ALTER ROLE \"{role}\" NOSUPERUSER"),
        );
    }
    match &facts.observed.database {
        Some(database) if database.owner != *name => refused(
            "DatabaseTaken",
            format!(
                "database '{name}' belongs to role '{}' and is not managed by ankka; to let the service have it, with role \
                 \"{name}\" made before where it is missing: ALTER DATABASE \"{name}\" OWNER TO \"{name}\"",
                database.owner
            ),
        ),
        None if status.secret.is_some() => refused(
            "DatabaseGone",
            format!(
                "database '{name}' was provisioned and is no longer on the server; restore it with role \"{name}\" as its \
                 owner, or, to begin with an empty one, delete this AnkkaDatabase \
                 and, once it is provisioned, run 'ankka services restart {}': its instances hold the old password",
                facts.names.service()
            ),
        ),
        _ => Ok(()),
    }
}

/// The server is claimed for another cluster: somebody has to say whether this one takes its place.
fn of_another(cluster: &str, other: &str) -> String {
    format!(
        "the database server is that of cluster {other} and this is cluster {cluster}: services of the same project and name would \
         share one database; give this cluster a server of its own, or, once the other one is gone for good, set database.takeOver \
         in the chart's values to {other}"
    )
}

/// Which login the Secret is to hold: the latest one asked for, in use or made, but none that has an end.
fn generation(
    facts: &Facts<'_>,
    status: &AnkkaDatabaseStatus,
    logins: &BTreeMap<i64, &RoleSeen>,
) -> Result<i64, Obstacle> {
    let asked = facts.database.spec.credential_generation;
    let in_place = status.secret.as_ref().map(|_| status.credential_generation);
    let mut wanted = match in_place {
        // Its password is derived from another key: those who use it go on until they are replaced.
        Some(in_place) if status.password_key.as_deref() != Some(facts.key) => asked.max(after(facts, in_place)?),
        _ => {
            let made = logins.iter().filter(|(_, role)| role.login).map(|(generation, _)| *generation).max();
            asked.max(in_place.unwrap_or_default()).max(made.unwrap_or_default())
        }
    }
    .max(0);
    while logins.get(&wanted).is_some_and(|role| role.ends_at.is_some()) {
        wanted = after(facts, wanted)?;
    }
    Ok(wanted)
}

/// The next generation. There is one, unless somebody has set the last by hand.
fn after(facts: &Facts<'_>, generation: i64) -> Result<i64, Obstacle> {
    generation.checked_add(1).ok_or_else(|| {
        let login = facts.names.login(generation);
        let detail = format!(
            "'{login}' is the last login that can be issued and cannot be used; let it in again, ALTER ROLE \"{login}\" VALID \
             UNTIL 'infinity', and delete this AnkkaDatabase: it is made again and finds its data"
        );
        Obstacle { reason: "NoLoginLeft", detail }
    })
}

fn steps(
    facts: &Facts<'_>,
    status: &AnkkaDatabaseStatus,
    logins: &BTreeMap<i64, &RoleSeen>,
    generation: i64,
) -> Vec<Step> {
    let observed = facts.observed;
    let mut steps = Vec::new();
    match &observed.owner {
        None => steps.push(Step::MakeOwner { logs_in: generation == 0 }),
        Some(owner) if !owner.bound && !observed.superuser => steps.push(Step::Control),
        Some(_) => {}
    }
    match &observed.database {
        None => steps.extend([Step::MakeDatabase, Step::Open]),
        Some(database) if database.public => steps.push(Step::Open),
        Some(_) => {}
    }
    match logins.get(&generation) {
        None if generation > 0 => steps.push(Step::MakeLogin(generation)),
        Some(role) if generation > 0 && !role.bound => steps.push(Step::BindLogin(generation)),
        _ => {}
    }
    // One that was made by hand and has never been in use; one that is, somebody has shut out.
    let never_used = status.secret.is_none() || status.credential_generation != generation;
    if never_used && logins.get(&generation).is_some_and(|role| !role.login) {
        steps.push(Step::SetPassword(generation));
    }
    steps
}

#[cfg(test)]
mod tests {
    use ankka_crds::resources::AnkkaDatabaseSpec;

    use super::*;
    use crate::server::DatabaseSeen;

    const KEY: &str = "0123456789ab";
    const CLUSTER: &str = "0a1b";

    fn names() -> Names {
        Names::new("shop", "cart")
    }

    fn role(name: &str) -> RoleSeen {
        RoleSeen { name: name.to_owned(), login: true, superuser: false, ends_at: None, bound: true }
    }

    fn provisioned() -> Observed {
        Observed {
            superuser: false,
            cluster: Some(CLUSTER.to_owned()),
            database: Some(DatabaseSeen { owner: "shop.cart".to_owned(), open: true, public: false }),
            owner: Some(role("shop.cart")),
            logins: Vec::new(),
        }
    }

    /// A server of ours with nothing of the service's on it.
    fn empty() -> Observed {
        Observed { cluster: Some(CLUSTER.to_owned()), ..Observed::default() }
    }

    fn database(asked: i64, in_place: Option<i64>) -> AnkkaDatabase {
        let mut database = AnkkaDatabase::new("cart", AnkkaDatabaseSpec { credential_generation: asked });
        database.status = in_place.map(|generation| AnkkaDatabaseStatus {
            database: Some("shop.cart".to_owned()),
            secret: Some("cart-db".to_owned()),
            credential_generation: generation,
            password_key: Some(KEY.to_owned()),
            ..AnkkaDatabaseStatus::default()
        });
        database
    }

    fn plan(database: &AnkkaDatabase, observed: &Observed) -> Plan {
        decide(&Facts { database, names: &names(), observed, key: KEY, cluster: CLUSTER }).expect("a plan")
    }

    fn obstacle(database: &AnkkaDatabase, observed: &Observed) -> &'static str {
        decide(&Facts { database, names: &names(), observed, key: KEY, cluster: CLUSTER })
            .expect_err("an obstacle")
            .reason
    }

    #[test]
    fn nothing_is_done_about_a_settled_database() {
        let plan = plan(&database(0, Some(0)), &provisioned());
        assert_eq!((plan.intent, plan.steps, plan.generation, plan.end), (None, vec![], 0, vec![]));
    }

    #[test]
    fn what_is_missing_is_made_in_order_and_written_down_before() {
        let plan = plan(&database(0, None), &empty());
        assert_eq!(plan.intent, Some(Intent { recovered: false }));
        assert_eq!(plan.steps, [Step::MakeOwner { logs_in: true }, Step::MakeDatabase, Step::Open]);
    }

    #[test]
    fn a_database_that_was_there_before_is_recovered_with_its_login() {
        let plan = plan(&database(0, None), &provisioned());
        assert_eq!((plan.intent, plan.steps, plan.generation), (Some(Intent { recovered: true }), vec![], 0));
    }

    #[test]
    fn a_crash_between_any_two_steps_leaves_the_rest_to_be_done() {
        let started = || {
            let mut database = database(0, None);
            database.status =
                Some(AnkkaDatabaseStatus { database: Some("shop.cart".to_owned()), ..AnkkaDatabaseStatus::default() });
            database
        };
        let owner = Observed { database: None, ..provisioned() };
        assert_eq!(plan(&started(), &owner).steps, [Step::MakeDatabase, Step::Open]);
        let mut closed = provisioned();
        closed.database.as_mut().expect("set").open = false;
        closed.database.as_mut().expect("set").public = true;
        assert_eq!(plan(&started(), &closed).steps, [Step::Open]);
        assert_eq!(plan(&started(), &closed).intent, None, "recovered was decided before");
    }

    #[test]
    fn a_database_that_an_administrator_closed_stays_closed() {
        let mut closed = provisioned();
        closed.database.as_mut().expect("set").open = false;
        assert_eq!(plan(&database(0, Some(0)), &closed).steps, []);
    }

    #[test]
    fn a_reissue_makes_a_login_beside_the_old_one_which_ends_afterwards() {
        let issued = plan(&database(1, Some(0)), &provisioned());
        assert_eq!((issued.generation, issued.steps), (1, vec![Step::MakeLogin(1)]));
        assert_eq!(issued.end, ["shop.cart"]);

        let mut made = provisioned();
        made.logins = vec![role("shop.cart#1")];
        let again = plan(&database(1, Some(0)), &made);
        assert_eq!((again.generation, again.steps, again.end), (1, vec![], vec!["shop.cart".to_owned()]));

        made.owner.as_mut().expect("set").ends_at = Some("2026-01-01T00:00:00Z".to_owned());
        let done = plan(&database(1, Some(1)), &made);
        assert_eq!((done.generation, done.end), (1, vec![]));
        assert_eq!(done.ending, [(0, "2026-01-01T00:00:00Z".to_owned())].into());
    }

    #[test]
    fn a_login_that_has_an_end_is_never_given_out_again() {
        let mut ended = provisioned();
        ended.owner.as_mut().expect("set").ends_at = Some("2026-01-01T00:00:00Z".to_owned());
        assert_eq!(plan(&database(0, None), &ended).generation, 1);
        ended.logins = vec![role("shop.cart#1")];
        assert_eq!(plan(&database(0, None), &ended).generation, 1, "the record was lost, the login was not");
    }

    #[test]
    fn the_last_login_there_can_be_is_an_obstacle_and_no_endless_search() {
        let last = names().login(i64::MAX);
        let mut ended = provisioned();
        ended.logins = vec![RoleSeen { ends_at: Some("2026-01-01T00:00:00Z".to_owned()), ..role(&last) }];
        assert_eq!(obstacle(&database(i64::MAX, Some(0)), &ended), "NoLoginLeft");
        let mut foreign = database(0, Some(i64::MAX));
        foreign.status.as_mut().expect("set").password_key = Some("another".to_owned());
        assert_eq!(obstacle(&foreign, &provisioned()), "NoLoginLeft");
        ended.logins[0].ends_at = None;
        assert_eq!(plan(&database(i64::MAX, None), &ended).generation, i64::MAX, "what the obstacle says to do helps");
    }

    #[test]
    fn under_another_key_the_next_login_is_made_and_only_one_however_often_it_is_decided() {
        let mut foreign = database(0, Some(0));
        foreign.status.as_mut().expect("set").password_key = Some("another".to_owned());
        let mut observed = provisioned();
        assert_eq!(plan(&foreign, &observed).generation, 1);
        observed.logins = vec![role("shop.cart#1")];
        assert_eq!(plan(&foreign, &observed).generation, 1);
    }

    #[test]
    fn roles_of_other_services_are_not_touched() {
        let mut observed = provisioned();
        observed.logins = vec![role("shop.cart-2#7"), role("shop.cart#x")];
        let plan = plan(&database(0, Some(0)), &observed);
        assert_eq!((plan.generation, plan.end), (0, vec![]));
    }

    #[test]
    fn a_role_made_by_hand_is_taken_and_one_shut_out_by_hand_stays_out() {
        let mut observed = provisioned();
        observed.owner.as_mut().expect("set").login = false;
        observed.owner.as_mut().expect("set").bound = false;
        assert_eq!(plan(&database(0, None), &observed).steps, [Step::Control, Step::SetPassword(0)]);
        assert_eq!(plan(&database(0, Some(0)), &observed).steps, [Step::Control]);
    }

    #[test]
    fn on_another_clusters_server_nothing_is_done() {
        let elsewhere = Observed { cluster: Some("2c3d".to_owned()), ..provisioned() };
        for database in [database(0, None), database(1, Some(0))] {
            assert_eq!(obstacle(&database, &elsewhere), "OtherCluster");
        }
        assert_eq!(obstacle(&database(0, None), &Observed { cluster: None, ..empty() }), "NoCluster");
    }

    #[test]
    fn what_is_somebody_elses_or_gone_is_reported_and_left_alone() {
        let mut taken = provisioned();
        taken.database.as_mut().expect("set").owner = "postgres".to_owned();
        assert_eq!(obstacle(&database(0, None), &taken), "DatabaseTaken");
        let gone = Observed { database: None, ..provisioned() };
        assert_eq!(obstacle(&database(0, Some(0)), &gone), "DatabaseGone");
        let mut powerful = provisioned();
        powerful.owner.as_mut().expect("set").superuser = true;
        assert_eq!(obstacle(&database(0, Some(0)), &powerful), "RoleIsSuperuser");
    }
}
