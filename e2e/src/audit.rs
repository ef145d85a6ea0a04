//! Reading the API server's audit log: who did what to which object, and how it was answered.

use std::{
    io::{BufRead, BufReader, Seek, SeekFrom},
    path::PathBuf,
};

use anyhow::{Context, Result};
use serde::Deserialize;

/// The log of one API server.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
}

/// A place in the log: its end at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position(u64);

/// One request. Fields of requests that concern no object are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditEvent {
    /// Who asked, e.g. `system:serviceaccount:ankka-system:ankka-operator`.
    pub user: String,
    /// On whose behalf, when the request impersonated somebody.
    pub impersonated: Option<String>,
    /// The asking program as it calls itself.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name of the kind, e.g. `deployments`.
    pub resource: String,
    /// E.g. `status`.
    pub subresource: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The path and query that were asked for.
    pub uri: String,
    /// Status of the answer; 0 when the request was cut off.
    pub code: u16,
    /// The requester has no right to that. Admission refuses with 403, too: an object in a namespace that is going, for one.
    pub forbidden: bool,
    /// `ResponseComplete`, or `ResponseStarted` and `Panic` beside it.
    pub stage: String,
    /// When the request arrived, RFC 3339 with microseconds.
    pub received: String,
}

impl AuditLog {
    /// The log in this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its present end, to read from later.
    ///
    /// # Errors
    /// When the file cannot be looked at.
    pub fn end(&self) -> Result<Position> {
        let metadata =
            std::fs::metadata(&self.path).with_context(|| format!("failed to look at {}", self.path.display()))?;
        Ok(Position(metadata.len()))
    }

    /// All requests logged since `from`, in the order they were answered, and where to go on reading. A watch is logged when it
    /// starts (`ResponseStarted`) and when it ends.
    ///
    /// # Errors
    /// When the file cannot be read or a line is no event.
    pub fn since(&self, from: Position) -> Result<(Vec<AuditEvent>, Position)> {
        let mut file =
            std::fs::File::open(&self.path).with_context(|| format!("failed to open {}", self.path.display()))?;
        file.seek(SeekFrom::Start(from.0))?;
        let mut reader = BufReader::new(file);
        let (mut events, mut position, mut line) = (Vec::new(), from, String::new());
        loop {
            line.clear();
            let read = reader.read_line(&mut line).context("failed to read the audit log")?;
            if !line.ends_with('\n') {
                return Ok((events, position)); // the end, or a line that is still being written
            }
            position.0 += read as u64;
            let entry: Entry = serde_json::from_str(&line).context("a line of the audit log is no event")?;
            events.push(entry.into());
        }
    }
}

/// As the API server writes it (`audit.k8s.io/v1`, level Metadata).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    impersonated_user: Option<User>,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Response,
    #[serde(default)]
    annotations: Annotations,
    request_received_timestamp: String,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    code: u16,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(default, rename = "authorization.k8s.io/decision")]
    decision: Option<String>,
}

impl AuditEvent {
    /// Whether it asks for something to be changed, by its verb.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

impl From<Entry> for AuditEvent {
    fn from(entry: Entry) -> Self {
        Self {
            user: entry.user.username,
            impersonated: entry.impersonated_user.map(|user| user.username),
            user_agent: entry.user_agent,
            verb: entry.verb,
            group: entry.object_ref.api_group,
            resource: entry.object_ref.resource,
            subresource: entry.object_ref.subresource,
            namespace: entry.object_ref.namespace,
            name: entry.object_ref.name,
            uri: entry.request_uri,
            code: entry.response_status.code,
            forbidden: entry.annotations.decision.as_deref() == Some("forbid"),
            stage: entry.stage,
            received: entry.request_received_timestamp,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test ends where it fails")]
mod tests {
    use std::io::Write;

    use super::*;

    const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete",
        "requestURI":"/apis/apps/v1/namespaces/a/deployments/b/status","verb":"patch","user":{"username":"jo","groups":["g"]},
        "userAgent":"kubectl","objectRef":{"resource":"deployments","namespace":"a","name":"b","apiGroup":"apps","subresource":"status"},
        "responseStatus":{"metadata":{},"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"},"requestReceivedTimestamp":"2026-11-30T14:23:24.789821Z"}"#;

    #[test]
    fn reading_goes_on_where_it_ended_and_leaves_a_line_that_is_not_finished() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let log = AuditLog::new(file.path().to_owned());
        let line = LINE.replace('\n', "") + "\n";
        file.write_all(line.as_bytes()).unwrap();
        let middle = log.end().unwrap();
        file.write_all(line.as_bytes()).unwrap();
        file.write_all(&line.as_bytes()[..40]).unwrap();
        let (events, end) = log.since(Position::default()).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!(log.since(middle).unwrap().0.len(), 1);
        assert_eq!((events[0].user.as_str(), events[0].subresource.as_str(), events[0].code), ("jo", "status", 403));
        assert!(events[0].forbidden);
        file.write_all(&line.as_bytes()[40..]).unwrap();
        assert_eq!(log.since(end).unwrap().0, events[..1]);
    }
}
