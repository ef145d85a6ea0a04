//! The names of one service's database, role and logins on the server.

use ankka_crds::names;

/// How many bytes of the database's name every login of it begins with, however it is cut.
const COMMON: usize = 30;

/// The names that belong to one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    project: String,
    service: String,
    /// The database, the role that owns it, and the first login.
    pub database: String,
}

impl Names {
    /// Those of this service.
    pub fn new(project: &str, service: &str) -> Self {
        Self { project: project.to_owned(), service: service.to_owned(), database: names::database(project, service) }
    }

    /// The service's own name.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// The login of a generation.
    pub fn login(&self, generation: i64) -> String {
        match generation {
            0 => self.database.clone(),
            _ => names::database_login(&self.project, &self.service, generation),
        }
    }

    /// Which generation's login this is; none when it is not this service's.
    pub fn generation(&self, login: &str) -> Option<i64> {
        let generation = match login.rsplit_once('#') {
            Some((_, number)) => number.parse().ok().filter(|number| *number > 0)?,
            None => 0,
        };
        (self.login(generation) == login).then_some(generation)
    }

    /// What the names of all further logins begin with. Those of other services may, too.
    pub fn beginning(&self) -> &str {
        self.database.get(..COMMON).unwrap_or(&self.database)
    }

    /// The identity labels of what belongs to the service.
    pub fn labels(&self) -> std::collections::BTreeMap<String, String> {
        ankka_crds::labels::identity(&self.project, &self.service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_told_from_those_of_other_services() {
        let names = Names::new("shop", "cart");
        assert_eq!(names.login(0), "shop.cart");
        assert_eq!(names.login(12), "shop.cart#12");
        assert_eq!(names.generation("shop.cart"), Some(0));
        assert_eq!(names.generation("shop.cart#12"), Some(12));
        for other in ["shop.cart#0", "shop.cart#012", "shop.cart#-1", "shop.cart#x", "shop.cart-2#1", "shop.car", "#1"]
        {
            assert_eq!(names.generation(other), None, "{other}");
        }
    }

    #[test]
    fn every_login_begins_like_the_database_and_fits() {
        let names = Names::new(&"p".repeat(46), &"s".repeat(63));
        for generation in [0, 1, 99, 1_000_000, i64::MAX] {
            let login = names.login(generation);
            assert!(login.len() <= 63 && login.starts_with(names.beginning()), "{login}");
            assert_eq!(names.generation(&login), Some(generation));
        }
    }
}
