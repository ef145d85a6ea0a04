//! Whether a service can have an address outside the cluster, and which. One set of sentences for the command line and the
//! controller.

use crate::names::{self, HOST_LABEL_LIMIT};

/// Where the installation publishes services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Domain under which every exposed service has a name of its own.
    pub base: String,
    /// Port of the addresses; 443 is not written in them.
    pub port: u16,
}

/// Why a service has no address outside the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It serves no HTTP.
    #[error("service '{0}' serves no HTTP, so it cannot be exposed")]
    NoHttp(String),
    /// Nothing could answer to the name.
    #[error(
        "hostname label '{label}' is {} characters, over the {HOST_LABEL_LIMIT} character limit; a shorter service name or project id is the only fix",
        label.len()
    )]
    LabelTooLong {
        /// The label.
        label: String,
    },
    /// The installation publishes nothing.
    #[error("the operator has no base domain (ANKKA_BASE_DOMAIN); no route can be rendered")]
    NoBaseDomain,
}

/// The host name of an exposed service.
///
/// # Errors
/// The first of: no HTTP, a label that is too long, no base domain.
pub fn host(project: &str, service: &str, serves_http: bool, domain: Option<&Domain>) -> Result<String, Refusal> {
    if !serves_http {
        return Err(Refusal::NoHttp(service.to_owned()));
    }
    let label = names::host_label(project, service);
    if label.len() > HOST_LABEL_LIMIT {
        return Err(Refusal::LabelTooLong { label });
    }
    let domain = domain.ok_or(Refusal::NoBaseDomain)?;
    Ok(format!("{label}.{}", domain.base))
}

/// `https://<host>`, with the port unless it is 443.
pub fn url(host: &str, domain: &Domain) -> String {
    match domain.port {
        443 => format!("https://{host}"),
        port => format!("https://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Domain, host, url};

    fn domain(port: u16) -> Domain {
        Domain { base: "apps.example.com".into(), port }
    }

    #[test]
    fn an_address_is_service_project_and_base_domain() {
        let name = host("shop", "cart", true, Some(&domain(443))).expect("a name");
        assert_eq!(url(&name, &domain(443)), "https://cart-shop.apps.example.com");
        assert_eq!(url(&name, &domain(8443)), "https://cart-shop.apps.example.com:8443");
    }

    #[test]
    fn each_refusal_has_its_own_sentence() {
        let said =
            |http, service: &str, domain: Option<&Domain>| host("shop", service, http, domain).expect_err("refused");
        assert_eq!(said(false, "cart", None).to_string(), "service 'cart' serves no HTTP, so it cannot be exposed");
        let long = "a".repeat(59);
        assert_eq!(
            said(true, &long, None).to_string(),
            format!(
                "hostname label '{long}-shop' is 64 characters, over the 63 character limit; a shorter service name or project id is the only fix"
            )
        );
        assert!(host("shop", &"a".repeat(58), true, Some(&domain(443))).is_ok());
        assert_eq!(
            said(true, "cart", None).to_string(),
            "the operator has no base domain (ANKKA_BASE_DOMAIN); no route can be rendered"
        );
    }
}
