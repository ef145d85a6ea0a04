//! Rules of a project's Secrets as `ankka projects secrets` sets them (reference, section H).
//!
//! They guard the names that the platform derives for what it issues. A Secret that has such a name already can be listed and
//! taken away, and is not set again.

use crate::names;
use crate::rules::grammar;

/// Largest value of one entry, in bytes.
pub const VALUE_LIMIT: usize = 64 * 1024;

/// Begins the names of the platform's own Secrets.
const RESERVED_PREFIX: &str = "ankka-";

/// Ends the names of the Secrets that the platform issues to services.
const RESERVED_SUFFIXES: [&str; 8] =
    ["-db", "-cluster-tls", "-service-tls", "-database-tls", "-mount-tls", "-secret-key", "-telemetry", "-storage"];

/// Checks the name of a Secret that is to be set. One with a `=` is an entry in the place of the name, and holds a value: it
/// is not repeated.
///
/// # Errors
/// The sentence to say.
pub fn validate_name(name: &str) -> Result<(), String> {
    let shown = grammar::shown(name);
    if name.is_empty() {
        return Err("secret name must not be empty".to_owned());
    }
    if name.contains('=') {
        return Err("secret name must not contain '='".to_owned());
    }
    if !names::is_object_name(name) {
        return Err(format!(
            "secret name '{shown}' is invalid: lowercase letters, digits, '-' and '.', at most 253 characters"
        ));
    }
    if name.starts_with(RESERVED_PREFIX) {
        return Err(format!("secret name '{shown}' is reserved for the platform: it starts with '{RESERVED_PREFIX}'"));
    }
    match RESERVED_SUFFIXES.iter().find(|suffix| name.ends_with(*suffix)) {
        Some(suffix) => Err(format!("secret name '{shown}' is reserved for the platform: it ends with '{suffix}'")),
        None => Ok(()),
    }
}

/// Checks one entry of the Secret: its key, and of its value no more than the length.
///
/// # Errors
/// The sentence to say. It never holds the value, and no key that cannot be one: that may be a piece of a value.
pub fn validate_entry(key: &str, length: usize) -> Result<(), String> {
    if key.is_empty() {
        return Err("secret entry name must not be empty".to_owned());
    }
    if !grammar::is_secret_key(key) {
        return Err(
            "secret entry name is invalid: letters, digits, '-', '_' and '.', at most 253 characters".to_owned()
        );
    }
    match length {
        0 => Err(format!("the value of secret entry '{key}' must not be empty")),
        too_long if too_long > VALUE_LIMIT => {
            Err(format!("the value of secret entry '{key}' is {length} bytes, over the {VALUE_LIMIT} byte limit"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_platform_are_reserved_and_their_neighbours_are_not() {
        for good in [
            "cart",
            "api-keys",
            "db",
            "cart-database",
            "cart.db",
            "ankka",
            "my-ankka-keys",
            "storage",
            &"a".repeat(253),
        ] {
            assert_eq!(validate_name(good), Ok(()), "{good}");
        }
        assert_eq!(
            validate_name("ankka-keys"),
            Err("secret name 'ankka-keys' is reserved for the platform: it starts with 'ankka-'".to_owned())
        );
        for suffix in RESERVED_SUFFIXES {
            assert_eq!(
                validate_name(&format!("cart{suffix}")),
                Err(format!("secret name 'cart{suffix}' is reserved for the platform: it ends with '{suffix}'"))
            );
        }
        assert!(validate_name("cart-cloud-storage").is_err(), "ends as the other credential does");
    }

    #[test]
    fn names_are_those_of_kubernetes() {
        for bad in ["Cart", "a_b", "-a", "a-", "a..b", "ä", &"a".repeat(254)] {
            let said = validate_name(bad).expect_err(bad);
            assert!(
                said.ends_with("is invalid: lowercase letters, digits, '-' and '.', at most 253 characters"),
                "{said}"
            );
        }
        assert_eq!(
            validate_name("PASSWORD=hunter2"),
            Err("secret name must not contain '='".to_owned()),
            "it is an entry, so its value is not repeated"
        );
        assert_eq!(validate_name(""), Err("secret name must not be empty".to_owned()));
    }

    #[test]
    fn entries_have_a_key_that_can_be_named_and_a_value_of_bounded_length() {
        for good in ["KEY", "a.b-c_D9", ".hidden", &"k".repeat(253)] {
            assert_eq!(validate_entry(good, VALUE_LIMIT), Ok(()), "{good}");
        }
        for bad in ["a b", "a=b", "a/b", "ä", ".", "..", &"k".repeat(254)] {
            assert_eq!(
                validate_entry(bad, 1),
                Err("secret entry name is invalid: letters, digits, '-', '_' and '.', at most 253 characters"
                    .to_owned()),
                "'{bad}' may be a piece of a value"
            );
        }
        assert_eq!(validate_entry("", 1), Err("secret entry name must not be empty".to_owned()));
        assert_eq!(validate_entry("KEY", 0), Err("the value of secret entry 'KEY' must not be empty".to_owned()));
        assert_eq!(
            validate_entry("KEY", VALUE_LIMIT + 1),
            Err("the value of secret entry 'KEY' is 65537 bytes, over the 65536 byte limit".to_owned())
        );
    }
}
