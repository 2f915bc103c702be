//! Values as literals of SQL, for statements that travel without parameters.
//!
//! A literal is pure ASCII, always of the form `E'…'::type`, with quotes and backslashes doubled and
//! everything else that is not ASCII escaped by its number. So nothing breaks out of it, whatever
//! `standard_conforming_strings`, `backslash_quote` or `client_encoding` are.

use std::fmt::{self, Write};

use chrono::{DateTime, Datelike, Utc};
use uuid::Uuid;

/// A value that can be written as a literal.
pub(crate) trait Literal {
    /// The server's name of its type.
    const TYPE: &'static str;
    /// The server's name of an array of them.
    const ARRAY: &'static str;

    /// Whether it is NULL.
    fn is_null(&self) -> bool {
        false
    }

    /// Writes what the type's input function reads, without any quotes around it.
    fn write(&self, out: &mut dyn Write) -> fmt::Result;
}

/// The literal of a value.
pub(crate) fn literal(value: &impl Literal) -> String {
    let mut sql = String::new();
    append(value, &mut sql);
    sql
}

fn append<T: Literal>(value: &T, sql: &mut String) {
    if value.is_null() {
        sql.push_str("NULL");
    } else {
        sql.push_str("E'");
        // Invariant: writing to a string does not fail.
        value.write(&mut Escaped(sql)).ok();
        sql.push('\'');
    }
    sql.push_str("::");
    sql.push_str(T::TYPE);
}

/// Writes into a string of the form `E'…'`.
struct Escaped<'s>(&'s mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '\'' => self.0.push_str("''"),
                '\\' => self.0.push_str(r"\\"),
                // A message ends at its first NUL. So the server sees it, and refuses it.
                '\0' => self.0.push_str(r"\000"),
                _ if character.is_ascii() => self.0.push(character),
                _ => write!(self.0, r"\U{:08X}", u32::from(character))?,
            }
        }
        Ok(())
    }
}

/// Writes into an element of an array, between its quotes.
struct Element<'o>(&'o mut dyn Write);

impl Write for Element<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(['"', '\\']) {
            let plain = part.trim_end_matches(['"', '\\']);
            self.0.write_str(plain)?;
            for special in part.get(plain.len()..).unwrap_or_default().chars() {
                self.0.write_char('\\')?;
                self.0.write_char(special)?;
            }
        }
        Ok(())
    }
}

/// Types that the server reads as Rust prints them.
macro_rules! printed {
    ($($of:ty: $name:literal;)*) => { $(
        impl Literal for $of {
            const TYPE: &'static str = $name;
            const ARRAY: &'static str = concat!($name, "[]");

            fn write(&self, out: &mut dyn Write) -> fmt::Result {
                write!(out, "{self}")
            }
        }
    )* };
}

printed! {
    bool: "boolean";
    i16: "smallint";
    i32: "integer";
    i64: "bigint";
    str: "text";
    String: "text";
    Uuid: "uuid";
}

impl Literal for [u8] {
    const TYPE: &'static str = "bytea";
    const ARRAY: &'static str = "bytea[]";

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str(r"\x")?;
        self.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl Literal for DateTime<Utc> {
    const TYPE: &'static str = "timestamptz";
    const ARRAY: &'static str = "timestamptz[]";

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let (is_common_era, year) = self.year_ce();
        let era = if is_common_era { "" } else { " BC" };
        write!(out, "{year:04}{}{era}", self.format("-%m-%d %H:%M:%S%.6f+00"))
    }
}

impl<T: Literal + ?Sized> Literal for &T {
    const TYPE: &'static str = T::TYPE;
    const ARRAY: &'static str = T::ARRAY;

    fn is_null(&self) -> bool {
        (**self).is_null()
    }

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        (**self).write(out)
    }
}

impl<T: Literal> Literal for Option<T> {
    const TYPE: &'static str = T::TYPE;
    const ARRAY: &'static str = T::ARRAY;

    fn is_null(&self) -> bool {
        self.as_ref().is_none_or(Literal::is_null)
    }

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        self.as_ref().map_or(Ok(()), |value| value.write(out))
    }
}

impl<T: Literal> Literal for Vec<T> {
    const TYPE: &'static str = T::ARRAY;
    const ARRAY: &'static str = T::ARRAY;

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_char('{')?;
        for (place, value) in self.iter().enumerate() {
            if place > 0 {
                out.write_char(',')?;
            }
            if value.is_null() {
                out.write_str("NULL")?;
                continue;
            }
            out.write_char('"')?;
            value.write(&mut Element(&mut *out))?;
            out.write_char('"')?;
        }
        out.write_char('}')
    }
}

#[cfg(test)]
mod tests;
