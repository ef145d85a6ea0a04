//! One PATCH of a service, with everything the answer says.

use ankka_crds::AnkkaService;
use jiff::{SignedDuration, Timestamp};
use kube::Resource;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::core::{Request, Status};
use serde_json::Value;

use super::patience::UNCERTAIN;
use super::{Attempt, Cluster, explain};
use crate::error::Error;
use crate::output;
use crate::settings::Project;
use crate::show::yaml;

/// What the server answered to a change.
pub(super) struct Answer {
    /// What it holds now.
    pub(super) service: AnkkaService,
    /// It was not there before.
    pub(super) created: bool,
    /// The server's time when it answered.
    pub(super) at: Timestamp,
    /// How long the answer took.
    pub(super) took: SignedDuration,
}

impl Cluster {
    /// Sends one patch and prints the server's warnings. A conflict is an answer of its own, and so is one that leaves open
    /// whether the patch was stored.
    pub(super) async fn patch(
        &self,
        attempt: Attempt<'_>,
        name: &str,
        project: &Project,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Result<Answer, Box<Status>>, Error> {
        let failed = |cause| self.explain(attempt, cause);
        let request = Request::new(AnkkaService::url_path(&(), Some(&project.namespace)))
            .patch(name, params, patch)
            .map_err(|cause| failed(kube::Error::BuildRequest(cause)))?;
        let request = request.map(|text| yaml::safe(String::from_utf8_lossy(&text).into_owned()));
        let sent = Timestamp::now();
        let response = match self.client.send(request.map(|text| Body::from(text.into_bytes()))).await {
            Ok(response) => response,
            Err(cause) if was_sent(&cause) => return Ok(Err(Box::new(unanswered(&cause)))),
            Err(cause) => return Err(failed(cause)),
        };
        let took = Timestamp::now().duration_since(sent);
        let (head, body) = response.into_parts();
        let text = match body.collect_bytes().await {
            Ok(text) => text,
            Err(cause) => return Ok(Err(Box::new(unanswered(&cause)))),
        };
        for text in head.headers.get_all("warning").iter().filter_map(|value| warning_text(value.to_str().ok()?)) {
            output::warning(&text);
        }
        if !head.status.is_success() {
            let status: Status = serde_json::from_slice(&text).unwrap_or_else(|_| {
                Status::failure(String::from_utf8_lossy(&text).trim(), "").with_code(head.status.as_u16())
            });
            return if status.code == 409 || UNCERTAIN.contains(&status.code) {
                Ok(Err(Box::new(status)))
            } else {
                Err(explain::refused(attempt, &status))
            };
        }
        let service: AnkkaService =
            serde_json::from_slice(&text).map_err(|cause| failed(kube::Error::SerdeError(cause)))?;
        let at = head
            .headers
            .get("date")
            .and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date.to_str().ok()?).ok())
            .unwrap_or_else(Timestamp::now);
        Ok(Ok(Answer { service, created: head.status.as_u16() == 201, at, took }))
    }
}

/// Whether a request without an answer may have reached the server: a connection was there.
fn was_sent(cause: &kube::Error) -> bool {
    let mut next: Option<&dyn std::error::Error> = Some(cause);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return !error.is_connect();
        }
        next = error.source();
    }
    false
}

/// What stands for the answer that did not come. Like the server's own word for it, it leaves open what was stored.
fn unanswered(cause: &kube::Error) -> Status {
    Status::failure(&format!("the connection broke: {}", explain::innermost(cause)), "Timeout").with_code(504)
}

/// The text of a `Warning` header: `299 - "text"`.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.splitn(3, ' ').nth(2)?;
    Some(quoted.trim().strip_prefix('"')?.strip_suffix('"')?.replace("\\\"", "\"").replace("\\\\", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_read_as_the_server_quotes_them() {
        assert_eq!(warning_text(r#"299 - "an \"even\" number""#).as_deref(), Some("an \"even\" number"));
        assert_eq!(warning_text("garbage"), None);
    }
}
