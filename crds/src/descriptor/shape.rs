//! Fields and types: decodes what can be decoded and reports the rest, in the order of the file.

use std::collections::HashMap;
use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value};

use super::fields;
use super::locate::range;
use super::path::Path;
use crate::Problem;
use crate::rules::{Unreadable, grammar};

/// Objects of more keys than this are searched for repeated keys by a table.
const LINEAR: usize = 16;

/// Reads values of a known type and notes what is wrong.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) problems: Vec<(Problem, Range<usize>)>,
    pub(super) unreadable: Unreadable,
    /// Repeated keys: index in `problems`, where the key stands for the message, and the offset of the key's first place.
    pub(super) repeated: Vec<(usize, usize)>,
}

impl Shape {
    pub(super) fn string(&mut self, path: &Path<'_>, value: &Value<'_>) -> Option<String> {
        match value {
            Value::StringLit(text) => Some(text.value.clone().into_owned()),
            other => self.wrong(path, other, "a string"),
        }
    }

    pub(super) fn boolean(&mut self, path: &Path<'_>, value: &Value<'_>) -> Option<bool> {
        match value {
            Value::BooleanLit(boolean) => Some(boolean.value),
            other => self.wrong(path, other, "a boolean"),
        }
    }

    pub(super) fn integer(&mut self, path: &Path<'_>, value: &Value<'_>) -> Option<i64> {
        let Value::NumberLit(number) = value else {
            return self.wrong(path, value, "an integer");
        };
        if let Ok(integer) = number.value.parse() {
            return Some(integer);
        }
        let shown = grammar::shown(number.value);
        let message = if is_whole(number.value) {
            format!("{path} must be an integer of at most 64 bits, not {shown}")
        } else {
            format!("{path} must be an integer, not {shown}")
        };
        self.unread(path, value, message)
    }

    /// Where `null` stands for absent.
    pub(super) fn nullable<T>(
        &mut self,
        path: &Path<'_>,
        value: &Value<'_>,
        read: impl FnOnce(&mut Self, &Path<'_>, &Value<'_>) -> Option<T>,
    ) -> Option<T> {
        if matches!(value, Value::NullKeyword(_)) { None } else { read(self, path, value) }
    }

    pub(super) fn array<T>(
        &mut self,
        path: &Path<'_>,
        value: &Value<'_>,
        mut read: impl FnMut(&mut Self, &Path<'_>, &Value<'_>) -> T,
    ) -> Option<Vec<T>> {
        let Value::Array(array) = value else {
            return self.wrong(path, value, "an array");
        };
        let read = |(index, element)| read(self, &Path::Index(path, index), element);
        Some(array.elements.iter().enumerate().map(read).collect())
    }

    /// An object whose keys are the author's; `read` is called once for each.
    pub(super) fn map<'t>(
        &mut self,
        path: &Path<'_>,
        value: &Value<'t>,
        mut read: impl FnMut(&mut Self, &Path<'_>, &str, &Value<'t>),
    ) -> Option<()> {
        let Value::Object(object) = value else {
            return self.wrong(path, value, "an object");
        };
        self.keys(
            object,
            |key| Path::Key(path, key),
            |shape, at, property| {
                read(shape, at, property.name.as_str(), &property.value);
            },
        );
        Some(())
    }

    /// An object of known fields; `read` answers whether it knows the field. None when `value` is no object.
    pub(super) fn object<'t>(
        &mut self,
        path: &Path<'_>,
        value: &Value<'t>,
        mut read: impl FnMut(&mut Self, &Path<'_>, &str, &Value<'t>) -> bool,
    ) -> Option<()> {
        let Value::Object(object) = value else {
            return self.wrong(path, value, "an object");
        };
        self.keys(
            object,
            |key| Path::Field(path, key),
            |shape, at, property| {
                let field = property.name.as_str();
                if !read(shape, at, field, &property.value) {
                    let message = fields::unknown(&path.to_string(), field);
                    shape.problems.push((Problem::new(at.to_string(), message), range(&property.name)));
                    shape.repeats(at, &property.value);
                }
            },
        );
        Some(())
    }

    /// Looks for repeated keys in a value that is not read for anything else.
    pub(super) fn repeats(&mut self, path: &Path<'_>, value: &Value<'_>) {
        match value {
            Value::Object(object) => self.keys(
                object,
                |key| Path::Field(path, key),
                |shape, at, property| {
                    shape.repeats(at, &property.value);
                },
            ),
            Value::Array(array) => {
                for (index, element) in array.elements.iter().enumerate() {
                    self.repeats(&Path::Index(path, index), element);
                }
            }
            _ => {}
        }
    }

    /// Calls `first` for the first property of each key and reports the others.
    fn keys<'a, 't>(
        &mut self,
        object: &'a Object<'t>,
        address: impl Fn(&'a str) -> Path<'a>,
        mut first: impl FnMut(&mut Self, &Path<'_>, &'a ObjectProp<'t>),
    ) {
        let mut table = HashMap::new();
        for (index, property) in object.properties.iter().enumerate() {
            let key = property.name.as_str();
            let earlier = if object.properties.len() <= LINEAR {
                object.properties[..index].iter().find(|earlier| earlier.name.as_str() == key)
            } else {
                let earlier = *table.entry(key).or_insert(index);
                (earlier != index).then(|| &object.properties[earlier])
            };
            let path = address(key);
            if let Some(earlier) = earlier {
                self.repeated.push((self.problems.len(), range(&earlier.name).start));
                self.problems.push((Problem::new(path.to_string(), grammar::shown(key)), range(&property.name)));
                self.repeats(&path, &property.value);
            } else {
                first(self, &path, property);
            }
        }
    }

    fn wrong<T>(&mut self, path: &Path<'_>, value: &Value<'_>, wanted: &str) -> Option<T> {
        let message = format!("{path} must be {wanted}, not {}", kind(value));
        self.unread(path, value, message)
    }

    fn unread<T>(&mut self, path: &Path<'_>, value: &Value<'_>, message: String) -> Option<T> {
        let path_text = path.to_string();
        self.unreadable.insert(path_text.clone());
        self.problems.push((Problem::new(path_text, message), range(value)));
        self.repeats(path, value);
        None
    }
}

/// What a value is, as a person says it.
pub(super) fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(number) if is_whole(number.value) => "an integer",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "a boolean",
        Value::Object(_) => "an object",
        Value::Array(_) => "an array",
        Value::NullKeyword(_) => "null",
    }
}

fn is_whole(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
}
