//! Money: whole cents, never floats.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

/// A sum of money, in cents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Cents(pub(crate) i64);

impl Cents {
    /// The sum of both; the largest sum there is instead of one that is too large.
    pub(crate) fn plus(self, other: impl Into<Self>) -> Self {
        Self(self.0.saturating_add(other.into().0))
    }

    /// The difference; the smallest sum there is instead of one that is too small.
    pub(crate) fn minus(self, other: impl Into<Self>) -> Self {
        Self(self.0.saturating_sub(other.into().0))
    }
}

impl fmt::Display for Cents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let cents = self.0.unsigned_abs();
        f.pad(&format!("{sign}{}.{:02}", cents / 100, cents % 100))
    }
}

/// What is charged or refunded: at least one cent. One that is not cannot be made, so nobody
/// checks it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct Amount(i64);

impl Amount {
    /// Takes a number of cents, from 1.
    pub(crate) const fn new(cents: i64) -> Option<Self> {
        if cents > 0 { Some(Self(cents)) } else { None }
    }
}

impl From<Amount> for Cents {
    fn from(amount: Amount) -> Self {
        Self(amount.0)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cents(self.0).fmt(f)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(AmountVisitor)
    }
}

/// Reads an amount, and says in one sentence what an amount is, whatever it met.
struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number of cents from 1 to {}", i64::MAX)
    }

    fn visit_i64<E: Error>(self, cents: i64) -> Result<Amount, E> {
        Amount::new(cents).ok_or_else(|| E::invalid_value(Unexpected::Signed(cents), &self))
    }

    fn visit_u64<E: Error>(self, cents: u64) -> Result<Amount, E> {
        let amount = i64::try_from(cents).ok().and_then(Amount::new);
        amount.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(cents), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Amount, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn an_amount_is_a_whole_number_of_cents_from_one() {
        assert_eq!(read("1"), Ok(Amount(1)));
        assert_eq!(read("9223372036854775807"), Ok(Amount(i64::MAX)));
        for wrong in ["0", "-1", "1.5", "1.0", "1e2", "\"1\"", "null", "true", "[1]"] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("a whole number of cents from 1 to"), "{wrong}: {error}");
        }
        for wrong in ["9223372036854775808", "99999999999999999999999"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cents_are_shown_with_two_digits_and_never_overflow() {
        assert_eq!(Cents(5).to_string(), "0.05");
        assert_eq!(Cents(-1_234).to_string(), "-12.34");
        assert_eq!(format!("{:>8}", Cents(12_000)), "  120.00");
        assert_eq!(Cents(i64::MIN).to_string(), "-92233720368547758.08");
        assert_eq!(Cents(i64::MAX).plus(Cents(1)), Cents(i64::MAX));
    }
}
