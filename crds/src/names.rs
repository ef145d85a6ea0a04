//! Every name the platform derives, with its limit. No two of one kind collide; a property test holds that.
//!
//! A service's name has at most 63 characters and a project's id at most 46, both without dots; a prefix has at most 16.

use sha2::{Digest, Sha256};

use crate::digest::hex;
use crate::rules::grammar;

/// Prefix of project namespaces unless the installation says otherwise.
pub const DEFAULT_PREFIX: &str = "ankka";

/// Longest prefix of project namespaces: with `-` and a project's id it fits a namespace's 63 characters.
pub const PREFIX_LIMIT: usize = 16;

/// What [`is_prefix`] asks for, in words.
pub const PREFIX_RULE: &str = "at most 16 lowercase letters, digits and '-', starting with a letter";

/// Longest name of a bucket, on either store.
pub const BUCKET_LIMIT: usize = 63;

/// Longest identifier of PostgreSQL, in bytes. What is longer it cuts by itself, without a word.
pub const DATABASE_LIMIT: usize = 63;

/// The container that runs the service's own program.
pub const SERVICE_CONTAINER: &str = "service";

/// The container that runs the platform's sidecar, with process hosting.
pub const SIDECAR_CONTAINER: &str = "sidecar";

/// Type of the Secret with a database login. A type cannot be changed, so an update of anybody else's Secret is refused.
pub const DATABASE_SECRET_TYPE: &str = "ankka.dev/database-credential";

/// Type of the Secret with a storage credential.
pub const STORAGE_SECRET_TYPE: &str = "ankka.dev/storage-credential";

/// Longest label of a host name.
pub const HOST_LABEL_LIMIT: usize = 63;

/// Whether project namespaces can have this prefix.
pub fn is_prefix(text: &str) -> bool {
    text.len() <= PREFIX_LIMIT && grammar::is_identifier(text)
}

/// Whether Kubernetes takes this as the name of an object: a lowercase DNS name of at most 253 characters.
pub fn is_object_name(text: &str) -> bool {
    grammar::is_subdomain(text)
}

/// The namespace of a project: `<prefix>-<project>`, at most 63 characters.
pub fn namespace(prefix: &str, project: &str) -> String {
    format!("{prefix}-{project}")
}

/// The project whose namespace this is; none when the name does not start with `<prefix>-`.
pub fn project_of<'a>(prefix: &str, namespace: &'a str) -> Option<&'a str> {
    namespace.strip_prefix(prefix)?.strip_prefix('-').filter(|project| !project.is_empty())
}

/// ServiceAccount, Role and RoleBinding of a service: `ankka-<service>` (a service may be called `default`), at most 69
/// of 253 characters.
pub fn account(service: &str) -> String {
    format!("ankka-{service}")
}

/// ConfigMap with the cluster-formation settings: `<service>-cluster`, at most 71 of 253 characters.
pub fn cluster_config(service: &str) -> String {
    format!("{service}-cluster")
}

/// Secret with the database login: `<service>-db`, at most 66 of 253 characters.
pub fn database_secret(service: &str) -> String {
    format!("{service}-db")
}

/// Secret with the storage credential on Garage: `<service>-storage`, at most 71 of 253 characters.
///
/// A service `x-cloud` on Garage and a service `x` on Google Cloud Storage derive the same name, which the documents fix;
/// the later one fails, naming the other.
pub fn storage_secret(service: &str) -> String {
    format!("{service}-storage")
}

/// Secret with the storage credential on Google Cloud Storage: `<service>-cloud-storage`, at most 77 of 253 characters.
pub fn cloud_storage_secret(service: &str) -> String {
    format!("{service}-cloud-storage")
}

/// Whether a Secret of this name is one the platform issues to a single service, so that no descriptor may read it.
/// `-storage` covers `-cloud-storage`.
pub fn is_issued_secret(name: &str) -> bool {
    name.ends_with("-storage")
}

/// First label of an exposed service's host name: `<service>-<project>`. Two services can derive the same one, and it can be
/// longer than [`HOST_LABEL_LIMIT`]: [`crate::exposure`] judges that.
pub fn host_label(project: &str, service: &str) -> String {
    format!("{service}-{project}")
}

/// ControllerRevision with a descriptor of a service: `ankka-<service>-<first 12 hex digits of the descriptor's digest>`, at
/// most 82 of 253 characters.
pub fn revision(service: &str, digest: &str) -> String {
    format!("ankka-{service}-{}", digest.get(..12).unwrap_or(digest))
}

/// The service whose ControllerRevision has this name; none when no service's has.
pub fn service_of_revision(name: &str) -> Option<&str> {
    let (service, digest) = name.strip_prefix("ankka-")?.rsplit_once('-')?;
    let is_digest = digest.len() == 12 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then_some(service)
}

/// The bucket's name on Garage, and of its route in the store's namespace: `<project>.<service>`. It can be longer than
/// [`BUCKET_LIMIT`]: the rules refuse such a service where the project and the store are known.
pub fn bucket(project: &str, service: &str) -> String {
    format!("{project}.{service}")
}

/// The database and the role that owns it: `<project>.<service>`, at most 63 bytes (decision 16 of the design).
///
/// A longer name is cut and ends in `-` and 8 hex digits of the SHA-256 of the full name. So does one that has exactly
/// the length and look of a cut one, so that nobody can choose a name that is another's.
pub fn database(project: &str, service: &str) -> String {
    cut(&bucket(project, service), DATABASE_LIMIT)
}

/// The login that a reissue makes: `<database>#<generation>`, the database's name cut so that all of it fits in 63 bytes.
pub fn database_login(project: &str, service: &str, generation: i64) -> String {
    let suffix = format!("#{generation}");
    cut(&bucket(project, service), DATABASE_LIMIT - suffix.len()) + &suffix
}

/// The generation in the name of a login: what follows `#`, or 0 of the first.
pub fn login_generation(login: &str) -> Option<i64> {
    login.rsplit_once('#').map_or(Some(0), |(_, generation)| generation.parse().ok())
}

/// Bytes of `-` and 8 hex digits.
const MARK: usize = 9;

fn cut(name: &str, limit: usize) -> String {
    let looks_cut = name.len() == limit
        && name.as_bytes()[limit - MARK] == b'-'
        && name.bytes().skip(limit - MARK + 1).all(|byte| byte.is_ascii_hexdigit());
    if name.len() <= limit && !looks_cut {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(limit - MARK).collect();
    short.push('-');
    short + &hex(&Sha256::digest(name)[..4])
}

#[cfg(test)]
mod tests {
    use super::{
        PREFIX_LIMIT, PREFIX_RULE, database_login, is_prefix, login_generation, revision, service_of_revision,
    };

    #[test]
    fn a_revisions_name_says_whose_it_is() {
        let name = revision("cart-2", &"0f".repeat(32));
        assert_eq!((name.as_str(), service_of_revision(&name)), ("ankka-cart-2-0f0f0f0f0f0f", Some("cart-2")));
        for other in ["cart-0f0f0f0f0f0f", "ankka-0f0f0f0f0f0f", "ankka-cart-7d8f9", "ankka-cart"] {
            assert_eq!(service_of_revision(other), None, "{other}");
        }
    }

    #[test]
    fn a_logins_name_says_its_generation() {
        let long = database_login(&"p".repeat(46), &"s".repeat(63), 12);
        assert_eq!(
            ["shop.cart", "shop.cart#3", &long, "shop.cart#x"].map(login_generation),
            [Some(0), Some(3), Some(12), None]
        );
    }

    #[test]
    fn a_prefix_begins_with_a_letter_and_leaves_room_for_a_project() {
        assert!(["a", "ankka", "acme-2", &"a".repeat(PREFIX_LIMIT)].into_iter().all(is_prefix));
        assert!(!["", "Ankka", "1a", "a-", "a.b", "../x", &"a".repeat(PREFIX_LIMIT + 1)].into_iter().any(is_prefix));
        assert!(PREFIX_RULE.contains(&PREFIX_LIMIT.to_string()));
    }
}
