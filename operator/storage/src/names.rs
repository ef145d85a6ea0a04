//! The names of one service's bucket and of its access keys in the store.

use ankka_crds::names;

/// How many letters and digits tell one access key from others of the same generation.
const MARK: usize = 8;

/// The names that belong to one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    project: String,
    service: String,
    /// The bucket.
    pub bucket: String,
}

impl Names {
    /// Those of this service.
    pub fn new(project: &str, service: &str) -> Self {
        Self { project: project.to_owned(), service: service.to_owned(), bucket: names::bucket(project, service) }
    }

    /// The service's own name.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// The project's id.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// The name of an access key, which `mark` tells from all others of its generation.
    pub fn key(&self, generation: i64, mark: &str) -> String {
        format!("{}#{generation}.{mark}", self.bucket)
    }

    /// Which generation's access key this is; none when it is none that the platform made for this service.
    pub fn generation(&self, key: &str) -> Option<i64> {
        let (bucket, generation) = of_key(key)?;
        (bucket == self.bucket).then_some(generation)
    }

    /// The identity labels of what belongs to the service.
    pub fn labels(&self) -> std::collections::BTreeMap<String, String> {
        ankka_crds::labels::identity(&self.project, &self.service)
    }
}

/// The bucket and the generation of an access key; none when it is none that the platform made.
pub fn of_key(key: &str) -> Option<(&str, i64)> {
    let (bucket, rest) = key.split_once('#')?;
    let (digits, mark) = rest.split_once('.')?;
    let generation = digits.parse().ok().filter(|number: &i64| *number >= 0 && number.to_string() == digits)?;
    let marked = mark.len() == MARK && mark.bytes().all(|byte| byte.is_ascii_alphanumeric());
    marked.then_some((bucket, generation))
}

/// A mark that no other access key has.
pub fn mark() -> String {
    use rand::{RngExt, distr::Alphanumeric};
    rand::rng().sample_iter(Alphanumeric).take(MARK).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_whose_it_is_and_of_which_generation() {
        let names = Names::new("shop", "reports");
        assert_eq!(names.key(12, "a1B2c3D4"), "shop.reports#12.a1B2c3D4");
        assert_eq!(names.generation("shop.reports#12.a1B2c3D4"), Some(12));
        assert_eq!(names.generation(&names.key(i64::MAX, &mark())), Some(i64::MAX));
        assert_ne!(mark(), mark());
    }

    #[test]
    fn what_somebody_else_has_made_is_not_taken_for_ours() {
        let names = Names::new("shop", "reports");
        for other in [
            "shop.reports",
            "shop.reports#1",
            "shop.reports#1.short",
            "shop.reports#01.a1B2c3D4",
            "shop.reports#-1.a1B2c3D4",
            "shop.reports#1.a1B2c3D45",
            "shop.reports#1.a1B2c3D-",
            "shop.report#1.a1B2c3D4",
            "backup",
            "",
        ] {
            assert_eq!(names.generation(other), None, "{other}");
        }
    }
}
