//! Canonical JSON: one text for one value, refused where a store or a reader would change it.
//!
//! Object members are sorted by their encoded key, arrays keep their order, there is no white
//! space, integers are exact from −2⁶³ to 2⁶⁴−1. NaN and infinities (`serde_json` would write
//! `null`), NUL in text (PostgreSQL refuses it with 22P05 or 22021), larger integers, keys that
//! are not text and nesting deeper than a reader follows are errors, before anything is written.

mod writer;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use writer::Writer;

/// A canonical JSON text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// The canonical JSON of a value.
    ///
    /// # Errors
    /// [`Invalid::Json`] when the value has no JSON that every store and reader would keep as it is.
    ///
    /// ```
    /// use sequor_core::Json;
    ///
    /// assert_eq!(Json::of(&(1, "a", None::<u8>))?.as_str(), r#"[1,"a",null]"#);
    /// assert!(Json::of(&f64::NAN).is_err());
    /// assert!(Json::of(&"nul \0").is_err());
    /// # Ok::<(), sequor_core::Invalid>(())
    /// ```
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, Invalid> {
        Writer::write(value, false)
    }

    /// The canonical JSON of what an enum's variant holds, without the variant's name: `null` for
    /// a unit variant. The stable name of an event or command is stored beside it instead.
    ///
    /// # Errors
    /// As [`Json::of`].
    pub fn of_variant<T: Serialize + ?Sized>(value: &T) -> Result<Self, Invalid> {
        Writer::write(value, true)
    }

    /// The canonical form of a JSON text. Of members with the same key the last one counts.
    ///
    /// # Errors
    /// [`Invalid::Json`] when the text is not JSON, or holds what [`Json::of`] refuses.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(Invalid::json)?;
        Self::of(&value)
    }

    /// Takes a text that a store has kept. A damaged one shows when it is read.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the text as a value.
    ///
    /// # Errors
    /// [`Invalid::Json`] when it has another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Invalid> {
        serde_json::from_str(&self.0).map_err(Invalid::json)
    }

    /// This object without some of its members; anything else stays as it is.
    ///
    /// # Errors
    /// As [`Json::parse`].
    pub fn without(&self, members: &[&str]) -> Result<Self, Invalid> {
        let mut value: serde_json::Value = self.read()?;
        if let Some(object) = value.as_object_mut() {
            object.retain(|key, _| !members.contains(&key.as_str()));
        }
        Self::of(&value)
    }
}

/// Lets an object pass. serde would also take an array for a struct, field by field in their order,
/// and so read one request as another after the fields were moved.
///
/// # Errors
/// [`Invalid::Json`] when the payload is no object.
pub fn object(payload: &str) -> Result<&str, Invalid> {
    if payload.trim_start().starts_with('{') {
        return Ok(payload);
    }
    Err(Invalid::json("expected an object, with each field by its name"))
}

/// Reads what [`Json::of_variant`] wrote, given the variant's name in Rust.
///
/// # Errors
/// [`Invalid::Json`] when the payload has another shape.
pub fn read_variant<T: DeserializeOwned>(variant: &str, payload: &str) -> Result<T, Invalid> {
    serde_json::from_str(&format!("{{\"{variant}\":{payload}}}")).map_err(Invalid::json)
}

impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &serde_json::value::RawValue =
            serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::of(&value).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({})", self.0)
    }
}
