//! Where a server is, for what stands in front of it.

/// The user and the place of a server, from its URL or from its host and port alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// With the password, if there is one: `user` or `user:password`, as the URL has it.
    pub(crate) user: String,
    /// A name or a number.
    pub(crate) host: String,
    /// 5432 unless it is told.
    pub(crate) port: u16,
}

impl Address {
    /// Takes a server apart; what is missing is PostgreSQL's default, and user `postgres`.
    pub(crate) fn parse(server: &str) -> Self {
        let after_scheme = server.split_once("://").map_or(server, |(_, rest)| rest);
        let authority = after_scheme.split(['/', '?']).next().unwrap_or_default();
        let (user, place) = authority.rsplit_once('@').unwrap_or(("postgres", authority));
        let number =
            place.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = number.unwrap_or((place, 5432));
        Self { user: user.to_owned(), host: host.to_owned(), port }
    }

    /// As `host:port`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The URL of a database for the same user, at a port of this machine.
    pub(crate) fn url_at(&self, port: u16, database: &str) -> String {
        format!("postgres://{}@127.0.0.1:{port}/{database}", self.user)
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn an_address_is_taken_from_a_url() {
        let check = |server: &str, user: &str, place: &str| {
            let address = Address::parse(server);
            assert_eq!((address.user.as_str(), &*address.place()), (user, place), "{server}");
        };
        check("127.0.0.1:5433", "postgres", "127.0.0.1:5433");
        check("localhost", "postgres", "localhost:5432");
        check("postgres://me:se@cret@db:5433/x?sslmode=disable", "me:se@cret", "db:5433");
        check("postgresql://db/x", "postgres", "db:5432");
    }
}
