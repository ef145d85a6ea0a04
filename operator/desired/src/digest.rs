//! Digest of a JSON value.

use std::fmt::Write as _;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// 16 hex digits of XXH3 over the value's canonical form.
pub(crate) fn of(value: &Value) -> String {
    format!("{:016x}", xxh3_64(canonical(value).as_bytes()))
}

/// The value's JSON with the keys of every object in order. `serde_json` keeps another order when some crate of the build
/// turns its `preserve_order` on, and digests would change with it.
pub(crate) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(&Value::String(key.clone()), out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}
