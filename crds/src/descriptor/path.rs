//! Addresses of fields: built while walking down, printed only where there is something to say.

use std::fmt;

/// The way from the root to one value.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    /// A field of an object; the name is a known one, or what the author wrote.
    Field(&'a Path<'a>, &'a str),
    /// A key of a map.
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(parent, name) if plain(name) => match parent {
                Self::Root => out.write_str(name),
                parent => write!(out, "{parent}.{name}"),
            },
            Self::Field(parent, name) | Self::Key(parent, name) => {
                write!(out, "{parent}[{}]", serde_json::Value::from(*name))
            }
            Self::Index(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

/// Whether a name needs no quotes in a path.
fn plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// One step of a printed path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Name(String),
    Index(usize),
}

/// The steps of a path that was printed by [`Path`] or by a rule.
pub(super) fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let mut values = serde_json::Deserializer::from_str(inner).into_iter::<serde_json::Value>();
            match values.next() {
                Some(Ok(serde_json::Value::String(name))) => steps.push(Step::Name(name)),
                Some(Ok(value)) => {
                    steps.extend(value.as_u64().and_then(|index| index.try_into().ok()).map(Step::Index));
                }
                _ => return steps,
            }
            rest = inner[values.byte_offset()..].strip_prefix(']').unwrap_or_default();
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::{Path, Step, steps};

    #[test]
    fn a_printed_path_leads_back_to_its_steps() {
        let service = Path::Field(&Path::Root, "service");
        let labels = Path::Field(&service, "labels");
        let odd = Path::Key(&labels, "a.b/c\"]x\n");
        assert_eq!(odd.to_string(), r#"service.labels["a.b/c\"]x\n"]"#);
        assert_eq!(
            steps(&odd.to_string()),
            ["service", "labels", "a.b/c\"]x\n"].map(|name| Step::Name(name.to_owned()))
        );

        let env = Path::Field(&service, "env");
        let entry = Path::Index(&env, 12);
        let name = Path::Field(&entry, "name").to_string();
        assert_eq!(name, "service.env[12].name");
        assert_eq!(steps(&name)[2..], [Step::Index(12), Step::Name("name".to_owned())]);
        assert_eq!(steps(""), []);
    }
}
