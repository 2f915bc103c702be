//! What payloads look like without their values: members and JSON types.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// The shape of one payload, or of several that were joined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// `null`, or the items of an empty array: it may be anything.
    Unknown,
    Scalar(&'static str),
    Array(Box<Self>),
    /// Members, and whether each payload had them.
    Object(BTreeMap<String, (Self, bool)>),
    /// One of several: payloads differ in their type.
    Either(Vec<Self>),
}

impl Shape {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Unknown,
            Value::Bool(_) => Self::Scalar("boolean"),
            Value::Number(_) => Self::Scalar("number"),
            Value::String(_) => Self::Scalar("text"),
            Value::Array(items) => {
                let items = items.iter().map(Self::of);
                Self::Array(Box::new(items.fold(Self::Unknown, |all, one| all.joined(&one))))
            }
            Value::Object(members) => {
                let member = |(name, value)| (String::clone(name), (Self::of(value), true));
                Self::Object(members.iter().map(member).collect())
            }
        }
    }

    /// The shape of payloads of both shapes.
    pub(super) fn joined(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Unknown, shape) | (shape, Self::Unknown) => shape.clone(),
            (Self::Array(one), Self::Array(two)) => Self::Array(Box::new(one.joined(two))),
            (Self::Object(one), Self::Object(two)) => Self::Object(joined_members(one, two)),
            (Self::Either(one), other) | (other, Self::Either(one)) => {
                let mut all = one.clone();
                let others =
                    if let Self::Either(two) = other { two.clone() } else { vec![other.clone()] };
                all.extend(others);
                all.sort();
                all.dedup();
                Self::Either(all)
            }
            (one, two) if one == two => one.clone(),
            (one, two) => {
                let mut both = vec![one.clone(), two.clone()];
                both.sort();
                Self::Either(both)
            }
        }
    }

    /// Whether nothing that both know differs.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => true,
            (Self::Array(one), Self::Array(two)) => one.is_like(two),
            (Self::Object(one), Self::Object(two)) => {
                one.len() == two.len()
                    && one.iter().zip(two).all(|((name, (shape, _)), (other_name, (other, _)))| {
                        name == other_name && shape.is_like(other)
                    })
            }
            (one, two) => one == two,
        }
    }
}

type Members = BTreeMap<String, (Shape, bool)>;

fn joined_members(one: &Members, two: &Members) -> Members {
    let names = one.keys().chain(two.keys());
    let member = |name: &String| match (one.get(name), two.get(name)) {
        (Some((left, always)), Some((right, also))) => Some((left.joined(right), *always && *also)),
        (Some((shape, _)), None) | (None, Some((shape, _))) => Some((shape.clone(), false)),
        (None, None) => None,
    };
    names.filter_map(|name| Some((name.clone(), member(name)?))).collect()
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("null"),
            Self::Scalar(name) => f.write_str(name),
            Self::Array(items) => write!(f, "[{items}]"),
            Self::Object(members) => {
                let text = |(name, (shape, always)): (&String, &(Self, bool))| {
                    format!("{name}{}: {shape}", if *always { "" } else { "?" })
                };
                write!(f, "{{{}}}", members.iter().map(text).collect::<Vec<_>>().join(", "))
            }
            Self::Either(shapes) => {
                let shapes: Vec<String> = shapes.iter().map(ToString::to_string).collect();
                f.write_str(&shapes.join(" or "))
            }
        }
    }
}
