//! One statement of ours, and how it travels: prepared, with its parameters beside it; or, behind a
//! pooler, as one simple message that needs nothing of the session, with its parameters inside.

use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Encode, Error, PgConnection, Postgres, RawSql, Type};

use crate::literal::{Literal, literal};

/// How statements travel in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Prepared once a session, then called with parameters.
    Prepared,
    /// Each a message of its own: the next one may meet another session of the server.
    Simple,
}

/// A statement with the parameters that it was given so far.
pub(crate) struct Statement<'q> {
    form: Form<'q>,
    /// How long an answer is waited for.
    limit: Duration,
}

enum Form<'q> {
    Prepared(Query<'q, Postgres, PgArguments>),
    Simple(Simple),
}

struct Simple {
    /// Another statement before it, or nothing.
    first: &'static str,
    sql: &'static str,
    literals: Vec<String>,
}

impl<'q> Statement<'q> {
    pub(crate) fn new(sql: &'static str, protocol: Protocol, limit: Duration) -> Self {
        let form = match protocol {
            Protocol::Prepared => Form::Prepared(sqlx::query(sql)),
            Protocol::Simple => Form::Simple(Simple { first: "", sql, literals: Vec::new() }),
        };
        Self { form, limit }
    }

    /// In a simple session, sends another statement before it in the same message, so that both meet
    /// the same session of the server; its rows come first.
    pub(crate) fn after(self, first: &'static str) -> Self {
        let form = match self.form {
            prepared @ Form::Prepared(_) => prepared,
            Form::Simple(simple) => Form::Simple(Simple { first, ..simple }),
        };
        Self { form, limit: self.limit }
    }

    /// Gives it the next parameter.
    pub(crate) fn bind<T>(self, value: T) -> Self
    where
        T: Encode<'q, Postgres> + Type<Postgres> + Literal + 'q,
    {
        let form = match self.form {
            Form::Prepared(query) => Form::Prepared(query.bind(value)),
            Form::Simple(mut simple) => {
                simple.literals.push(literal(&value));
                Form::Simple(simple)
            }
        };
        Self { form, limit: self.limit }
    }

    /// All its rows.
    pub(crate) async fn fetch_all(self, postgres: &mut PgConnection) -> Result<Vec<PgRow>, Error> {
        match self.form {
            Form::Prepared(query) => answered(self.limit, query.fetch_all(postgres)).await,
            Form::Simple(simple) => {
                answered(self.limit, simple.message().fetch_all(postgres)).await
            }
        }
    }

    /// Its first row.
    pub(crate) async fn fetch_optional(
        self,
        postgres: &mut PgConnection,
    ) -> Result<Option<PgRow>, Error> {
        match self.form {
            Form::Prepared(query) => answered(self.limit, query.fetch_optional(postgres)).await,
            Form::Simple(simple) => {
                answered(self.limit, simple.message().fetch_optional(postgres)).await
            }
        }
    }

    /// Its first row, which must be there.
    pub(crate) async fn fetch_one(self, postgres: &mut PgConnection) -> Result<PgRow, Error> {
        self.fetch_optional(postgres).await?.ok_or(Error::RowNotFound)
    }

    /// Runs it, whatever it answers.
    pub(crate) async fn execute(self, postgres: &mut PgConnection) -> Result<(), Error> {
        let limit = self.limit;
        let done = async {
            match self.form {
                Form::Prepared(query) => query.execute(postgres).await.map(drop),
                Form::Simple(simple) => simple.message().execute(postgres).await.map(drop),
            }
        };
        answered(limit, done).await
    }
}

/// Waits for an answer, but not for ever: a server that hangs, or is gone without a word, is a lost
/// connection.
pub(crate) async fn answered<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let answer = tokio::time::timeout(limit, answer).await;
    answer.unwrap_or_else(|_| Err(Error::Io(std::io::ErrorKind::TimedOut.into())))
}

impl Simple {
    /// Invariant: a literal does not break out, see `literal.rs`.
    fn message(&self) -> RawSql {
        sqlx::raw_sql(AssertSqlSafe(self.text()))
    }

    /// The statement with its parameters in their places, and without the comments above it, which
    /// speak of them.
    fn text(&self) -> String {
        let bytes = self.literals.iter().map(String::len).sum::<usize>();
        let mut text = String::with_capacity(self.first.len() + self.sql.len() + bytes);
        let lines = self.first.lines().chain(self.sql.lines());
        for line in lines.filter(|line| !line.starts_with("--")) {
            let mut parts = line.split('$');
            text.push_str(parts.next().unwrap_or_default());
            for part in parts {
                let digits = part.bytes().take_while(u8::is_ascii_digit).count();
                let (place, rest) = part.split_at(digits);
                text.push_str(self.literal_at(place).unwrap_or("$"));
                text.push_str(rest);
            }
            text.push('\n');
        }
        text
    }

    fn literal_at(&self, place: &str) -> Option<&str> {
        let place = place.parse::<usize>().ok()?.checked_sub(1)?;
        self.literals.get(place).map(String::as_str)
    }
}

impl std::fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statement").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Simple;

    #[test]
    fn parameters_take_their_places_and_comments_go() {
        let sql = "-- Takes $1.\nSELECT $2, $1 +\n$10;";
        let literals = (1..=10).map(|place| format!("<$1 {place}>")).collect();
        let text = Simple { first: "-- First.\nSELECT 0;", sql, literals }.text();
        assert_eq!(text, "SELECT 0;\nSELECT <$1 2>, <$1 1> +\n<$1 10>;\n");
    }
}
