//! From a field's path to its place in the file, and from an offset to line and column.

use std::collections::HashMap;
use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;

use super::path::{Step, steps};
use crate::rules::Place;
use crate::{Located, Problem};

/// Objects of more properties than this are searched by an index.
const LINEAR: usize = 32;

/// Finds fields in one file.
pub(super) struct Locator<'a, 't> {
    text: &'t str,
    root: &'a Value<'t>,
    indexes: HashMap<*const Object<'t>, HashMap<&'a str, usize>>,
}

impl<'a, 't> Locator<'a, 't> {
    pub(super) fn new(text: &'t str, root: &'a Value<'t>) -> Self {
        Self { text, root, indexes: HashMap::new() }
    }

    /// Where the field at `path` is; the object it is missing from when it is not there.
    pub(super) fn place(&mut self, path: &str, place: Place) -> Range<usize> {
        match (self.walk(path), place) {
            (Ok(found), Place::Key) => found.key,
            (Ok(found), Place::Value | Place::Or(_)) => found.value,
            (Err(_), Place::Or(other)) => self.place(other, Place::Value),
            (Err(enclosing), Place::Value | Place::Key) => self.enclosing(enclosing),
        }
    }

    /// Where the value at `path` is; none when it is not there.
    pub(super) fn find(&mut self, path: &str) -> Option<Range<usize>> {
        self.walk(path).ok().map(|found| found.value)
    }

    /// Walks as far as the path leads; the range of the last value there is when it leads on.
    fn walk(&mut self, path: &str) -> Result<Found, Range<usize>> {
        let mut value = self.root;
        let mut key = range(value);
        for step in steps(path) {
            let next = match (value, step) {
                (Value::Object(object), Step::Name(name)) => self.property(object, &name).map(|property| {
                    key = range(&property.name);
                    &property.value
                }),
                (Value::Array(array), Step::Index(index)) => array.elements.get(index).inspect(|element| {
                    key = range(*element);
                }),
                _ => None,
            };
            value = next.ok_or_else(|| range(value))?;
        }
        Ok(Found { key, value: range(value) })
    }

    fn property(&mut self, object: &'a Object<'t>, name: &str) -> Option<&'a ObjectProp<'t>> {
        if object.properties.len() <= LINEAR {
            return object.properties.iter().find(|property| property.name.as_str() == name);
        }
        let index = self.indexes.entry(std::ptr::from_ref(object)).or_insert_with(|| {
            let mut index = HashMap::with_capacity(object.properties.len());
            for (position, property) in object.properties.iter().enumerate() {
                index.entry(property.name.as_str()).or_insert(position);
            }
            index
        });
        index.get(name).and_then(|position| object.properties.get(*position))
    }

    /// A whole object when it is on one line, its brace otherwise.
    fn enclosing(&self, object: Range<usize>) -> Range<usize> {
        if self.text[object.clone()].contains('\n') { object.start..object.start + 1 } else { object }
    }
}

struct Found {
    key: Range<usize>,
    value: Range<usize>,
}

/// The bytes of a node.
pub(super) fn range(node: &impl Ranged) -> Range<usize> {
    let range = node.range();
    range.start..range.end
}

/// Lines and columns of `offsets` into `text`, from 1, columns in characters. One pass, however many there are.
pub(super) fn lines_and_columns(text: &str, offsets: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut order: Vec<(usize, usize)> = offsets.enumerate().map(|(slot, offset)| (offset, slot)).collect();
    order.sort_unstable();
    let mut places = vec![(0, 0); order.len()];
    let (mut line, mut column, mut at) = (1, 1, 0);
    for (offset, slot) in order {
        for character in text[at..offset].chars() {
            if character == '\n' {
                (line, column) = (line + 1, 1);
            } else {
                column += 1;
            }
        }
        at = offset;
        places[slot] = (line, column);
    }
    places
}

/// Problems with their places in `text`, which begins `mark` bytes into what was read.
pub(super) fn locate(text: &str, mark: usize, problems: Vec<(Problem, Range<usize>)>) -> Vec<Located> {
    let places = lines_and_columns(text, problems.iter().map(|(_, span)| span.start));
    problems
        .into_iter()
        .zip(places)
        .map(|((problem, span), (line, column))| Located {
            problem,
            line,
            column,
            span: span.start + mark..span.end + mark,
        })
        .collect()
}
