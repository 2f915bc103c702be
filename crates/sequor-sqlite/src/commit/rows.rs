//! Rows as one JSON array of arrays, which `jsonb_each` takes apart: a statement costs a trip to
//! the connection's thread, so one carries the rows of a whole batch.

use sequor_core::StreamId;
use uuid::Uuid;

/// Rows under construction.
#[derive(Debug)]
pub(crate) struct Rows(Vec<u8>);

/// One row under construction; columns in the order of the statement.
#[derive(Debug)]
pub(crate) struct Columns<'a>(&'a mut Vec<u8>);

impl Rows {
    pub(crate) fn new() -> Self {
        Self(b"[".to_vec())
    }

    /// Appends a row.
    pub(crate) fn row(&mut self) -> Columns<'_> {
        if self.0.len() > 1 {
            self.0.extend_from_slice(b"],");
        }
        self.0.push(b'[');
        Columns(&mut self.0)
    }

    /// Appends a row that begins with a stream.
    pub(crate) fn stream(&mut self, stream: &StreamId) -> Columns<'_> {
        let columns = self.row().uuid(stream.tenant.as_uuid());
        columns.text(stream.aggregate.as_str()).text(stream.id.as_str())
    }

    /// The JSON text.
    pub(crate) fn into_text(mut self) -> String {
        if self.0.len() > 1 {
            self.0.push(b']');
        }
        self.0.push(b']');
        String::from_utf8(self.0).unwrap_or_default()
    }
}

impl Columns<'_> {
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.separate();
        // Writing into memory does not fail.
        serde_json::to_writer(&mut *self.0, text).ok();
        self
    }

    pub(crate) fn text_or_null(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    pub(crate) fn number(mut self, number: u64) -> Self {
        self.separate();
        serde_json::to_writer(&mut *self.0, &number).ok();
        self
    }

    pub(crate) fn signed(mut self, number: i64) -> Self {
        self.separate();
        serde_json::to_writer(&mut *self.0, &number).ok();
        self
    }

    /// Bytes travel as hexadecimal text; the statement takes it back with `unhex`.
    pub(crate) fn uuid(mut self, id: &Uuid) -> Self {
        self.separate();
        let mut buffer = Uuid::encode_buffer();
        self.0.push(b'"');
        self.0.extend_from_slice(id.simple().encode_lower(&mut buffer).as_bytes());
        self.0.push(b'"');
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.separate();
        self.0.push(b'"');
        for byte in bytes {
            let digits = [byte >> 4, byte & 0xf].map(usize::from);
            self.0.extend(digits.iter().filter_map(|digit| DIGITS.get(*digit)));
        }
        self.0.push(b'"');
        self
    }

    pub(crate) fn null(mut self) -> Self {
        self.separate();
        self.0.extend_from_slice(b"null");
        self
    }

    fn separate(&mut self) {
        // Invariant: no column ends with a bracket that opens.
        if self.0.last() != Some(&b'[') {
            self.0.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_an_array_of_arrays() {
        let mut rows = Rows::new();
        rows.row().text("a\"b").null().number(7);
        rows.row().uuid(&Uuid::nil()).bytes(&[0x0f, 0xa0]).signed(-1);
        let id = "0".repeat(32);
        assert_eq!(rows.into_text(), format!(r#"[["a\"b",null,7],["{id}","0fa0",-1]]"#));
        assert_eq!(Rows::new().into_text(), "[]");
    }
}
