//! The serializer behind [`Json::of`](super::Json::of).

use serde::ser::{self, Serialize};

use super::Json;
use crate::error::Invalid;

/// Deeper values could be written, but `serde_json` would not read them back (its limit is 128).
const DEPTH_MAX: usize = 100;

/// How `serde_json` marks a text that is JSON already, and a number kept as text.
const RAW_VALUE: &str = "$serde_json::private::RawValue";
const RAW_NUMBER: &str = "$serde_json::private::Number";

/// Writes one value.
#[derive(Debug)]
pub(super) struct Writer {
    out: Vec<u8>,
    depth: usize,
    /// Whether the outermost variant's name is still to be left out.
    untag: bool,
}

impl Writer {
    pub(super) fn write<T: Serialize + ?Sized>(value: &T, untag: bool) -> Result<Json, Invalid> {
        let mut writer = Self { out: Vec::with_capacity(128), depth: 0, untag };
        value.serialize(&mut writer)?;
        let text = String::from_utf8(writer.out).map_err(|_| Invalid::json("not UTF-8"))?;
        Ok(Json(text.into()))
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn put_scalar<T: Serialize>(&mut self, value: T) -> Result<(), Invalid> {
        serde_json::to_writer(&mut self.out, &value).map_err(Invalid::json)
    }

    fn put_text(&mut self, text: &str) -> Result<(), Invalid> {
        if text.contains('\0') {
            return Err(Invalid::json("text holds NUL (U+0000)"));
        }
        self.put_scalar(text)
    }

    fn put_number_text(&mut self, text: &str) -> Result<(), Invalid> {
        let integer = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
        let float = text.contains(['.', 'e', 'E']) && text.parse().is_ok_and(f64::is_finite);
        if !integer && !float {
            return Err(out_of_range());
        }
        self.put(text);
        Ok(())
    }

    /// Opens an array or object, inside a variant's tag where there is one.
    fn open(&mut self, shape: Shape, tag: Option<&str>) -> Result<Compound<'_>, Invalid> {
        let tagged = self.open_tag(tag)?;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Invalid::json("nested deeper than 100"));
        }
        self.put(if shape == Shape::Object { "{" } else { "[" });
        let start = self.out.len();
        Ok(Compound { writer: self, shape, tagged, start, members: Vec::new(), sorted: true })
    }

    fn open_tag(&mut self, tag: Option<&str>) -> Result<bool, Invalid> {
        let Some(tag) = tag else { return Ok(false) };
        if std::mem::take(&mut self.untag) {
            return Ok(false);
        }
        self.depth += 1;
        self.put("{");
        self.put_text(tag)?;
        self.put(":");
        Ok(true)
    }

    fn close_tag(&mut self, tagged: bool) {
        if tagged {
            self.put("}");
            self.depth -= 1;
        }
    }
}

fn out_of_range() -> Invalid {
    Invalid::json("a number outside -2^63 to 2^64-1")
}

impl ser::Error for Invalid {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::json(message)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Array,
    Object,
    /// One field whose text is JSON already, or a number.
    Raw,
}

/// An array or object that is being written.
#[derive(Debug)]
pub(super) struct Compound<'w> {
    writer: &'w mut Writer,
    shape: Shape,
    tagged: bool,
    /// Where the first element or member starts.
    start: usize,
    /// Where each member starts and its key ends.
    members: Vec<(usize, usize)>,
    /// Whether the members came in order.
    sorted: bool,
}

impl Compound<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Invalid> {
        if self.writer.out.len() > self.start {
            self.writer.put(",");
        }
        value.serialize(&mut *self.writer)
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Invalid> {
        if self.writer.out.len() > self.start {
            self.writer.put(",");
        }
        let from = self.writer.out.len();
        key.serialize(&mut *self.writer)?;
        match self.writer.out.get(from) {
            Some(b'"') => {}
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.writer.out.insert(from, b'"');
                self.writer.put("\"");
            }
            _ => return Err(Invalid::json("an object's key is not text")),
        }
        let to = self.writer.out.len();
        if let Some(&(last_from, last_to)) = self.members.last() {
            let out = &self.writer.out;
            self.sorted &= out.get(last_from..last_to) < out.get(from..to);
        }
        self.members.push((from, to));
        self.writer.put(":");
        Ok(())
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Invalid> {
        if self.shape == Shape::Raw {
            return self.raw(key, value);
        }
        self.key(key)?;
        value.serialize(&mut *self.writer)
    }

    /// Takes a text that is JSON already, or a number, and writes its canonical form.
    fn raw<T: Serialize + ?Sized>(&mut self, kind: &str, value: &T) -> Result<(), Invalid> {
        let from = self.writer.out.len();
        value.serialize(&mut *self.writer)?;
        let quoted = self.writer.out.split_off(from);
        let text: String = serde_json::from_slice(&quoted).map_err(Invalid::json)?;
        if kind == RAW_NUMBER {
            return self.writer.put_number_text(&text);
        }
        let value: serde_json::Value = serde_json::from_str(&text).map_err(Invalid::json)?;
        value.serialize(&mut *self.writer)
    }

    fn finish(mut self) -> Result<(), Invalid> {
        if !self.sorted {
            self.sort()?;
        }
        match self.shape {
            Shape::Array => self.writer.put("]"),
            Shape::Object => self.writer.put("}"),
            Shape::Raw => return Ok(()),
        }
        self.writer.depth -= 1;
        self.writer.close_tag(self.tagged);
        Ok(())
    }

    /// Brings the members into the order of their keys.
    fn sort(&mut self) -> Result<(), Invalid> {
        let unsorted = self.writer.out.split_off(self.start);
        let ends = self.members.iter().skip(1).map(|(next, _)| next - 1);
        let ends = ends.chain([self.start + unsorted.len()]);
        let mut members: Vec<(&[u8], &[u8])> = self
            .members
            .iter()
            .zip(ends)
            .filter_map(|(&(from, key_to), to)| {
                let member = unsorted.get(from - self.start..to - self.start)?;
                Some((member.get(..key_to - from)?, member))
            })
            .collect();
        members.sort_unstable_by_key(|&(key, _)| key);
        if members.array_windows().any(|[one, next]| one.0 == next.0) {
            return Err(Invalid::json("an object has the same key twice"));
        }
        let sorted: Vec<&[u8]> = members.into_iter().map(|(_, member)| member).collect();
        self.writer.out.extend(sorted.join(&b','));
        Ok(())
    }
}

impl<'w> ser::Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Invalid;
    type SerializeSeq = Compound<'w>;
    type SerializeTuple = Compound<'w>;
    type SerializeTupleStruct = Compound<'w>;
    type SerializeTupleVariant = Compound<'w>;
    type SerializeMap = Compound<'w>;
    type SerializeStruct = Compound<'w>;
    type SerializeStructVariant = Compound<'w>;

    fn serialize_bool(self, value: bool) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_i8(self, value: i8) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_i16(self, value: i16) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_i32(self, value: i32) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_i64(self, value: i64) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_i128(self, value: i128) -> Result<(), Invalid> {
        self.put_number_text(&value.to_string())
    }
    fn serialize_u8(self, value: u8) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_u16(self, value: u16) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_u32(self, value: u32) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_u64(self, value: u64) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_u128(self, value: u128) -> Result<(), Invalid> {
        self.put_number_text(&value.to_string())
    }
    fn serialize_f32(self, value: f32) -> Result<(), Invalid> {
        if value.is_finite() { self.put_scalar(value) } else { Err(not_finite()) }
    }
    fn serialize_f64(self, value: f64) -> Result<(), Invalid> {
        if value.is_finite() { self.put_scalar(value) } else { Err(not_finite()) }
    }
    fn serialize_char(self, value: char) -> Result<(), Invalid> {
        self.put_text(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<(), Invalid> {
        self.put_text(value)
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Invalid> {
        self.put_scalar(value)
    }
    fn serialize_none(self) -> Result<(), Invalid> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Invalid> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Invalid> {
        self.put("null");
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Invalid> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Invalid> {
        if std::mem::take(&mut self.untag) {
            return self.serialize_unit();
        }
        self.put_text(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Invalid> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Invalid> {
        let tagged = self.open_tag(Some(variant))?;
        value.serialize(&mut *self)?;
        self.close_tag(tagged);
        Ok(())
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'w>, Invalid> {
        self.open(Shape::Array, None)
    }
    fn serialize_tuple(self, _: usize) -> Result<Compound<'w>, Invalid> {
        self.open(Shape::Array, None)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'w>, Invalid> {
        self.open(Shape::Array, None)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w>, Invalid> {
        self.open(Shape::Array, Some(variant))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'w>, Invalid> {
        self.open(Shape::Object, None)
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'w>, Invalid> {
        if name == RAW_VALUE || name == RAW_NUMBER {
            let start = self.out.len();
            return Ok(Compound {
                writer: self,
                shape: Shape::Raw,
                tagged: false,
                start,
                members: Vec::new(),
                sorted: true,
            });
        }
        self.open(Shape::Object, None)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w>, Invalid> {
        self.open(Shape::Object, Some(variant))
    }
}

fn not_finite() -> Invalid {
    Invalid::json("NaN or an infinity")
}

/// Implements serde's seven ways of writing an array or object by the two that JSON has.
macro_rules! compound {
    ($($serde_trait:ident: $method:ident => $own:ident),+ $(,)?) => {$(
        impl ser::$serde_trait for Compound<'_> {
            type Ok = ();
            type Error = Invalid;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Invalid> {
                self.$own(value)
            }
            fn end(self) -> Result<(), Invalid> {
                self.finish()
            }
        }
    )+};
}

compound! {
    SerializeSeq: serialize_element => element,
    SerializeTuple: serialize_element => element,
    SerializeTupleStruct: serialize_field => element,
    SerializeTupleVariant: serialize_field => element,
}

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Invalid;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Invalid> {
        self.key(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Invalid> {
        value.serialize(&mut *self.writer)
    }
    fn end(self) -> Result<(), Invalid> {
        self.finish()
    }
}

impl ser::SerializeStruct for Compound<'_> {
    type Ok = ();
    type Error = Invalid;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Invalid> {
        self.member(key, value)
    }
    fn end(self) -> Result<(), Invalid> {
        self.finish()
    }
}

impl ser::SerializeStructVariant for Compound<'_> {
    type Ok = ();
    type Error = Invalid;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Invalid> {
        self.member(key, value)
    }
    fn end(self) -> Result<(), Invalid> {
        self.finish()
    }
}
