// A turnstile: paid for, then passed. The domain of this crate's examples and tests.
use sequor_core::{Aggregate, Decider, Decision};
use sequor_macros::{Command, Event};

#[derive(Clone, Command, serde::Serialize, serde::Deserialize)]
#[command(crate = sequor_core, prefix = "turnstile.", id = gate, output = u32, rejection = No)]
enum Ask {
    Pay { gate: String, cents: u32 },
    Pass { gate: String },
}

#[derive(Event, serde::Serialize, serde::Deserialize)]
#[event(crate = sequor_core, prefix = "turnstile.")]
enum Turned {
    Paid { cents: u32 },
    Passed,
}

#[derive(Debug, thiserror::Error)]
#[error("{self:?}")]
enum No {
    PaidBefore,
    NotPaid,
}

#[derive(Clone, Default)]
struct Turnstile {
    paid: bool,
    passed: u32,
}

impl Ask {
    fn pay(gate: &str, cents: u32) -> Self {
        Self::Pay { gate: gate.to_owned(), cents }
    }

    fn pass(gate: &str) -> Self {
        Self::Pass { gate: gate.to_owned() }
    }
}

impl Aggregate for Turnstile {
    const NAME: &str = "turnstile";
    type Event = Turned;

    fn apply(&mut self, turned: &Turned) {
        match turned {
            Turned::Paid { .. } => self.paid = true,
            Turned::Passed => {
                self.paid = false;
                self.passed += 1;
            }
        }
    }
}

/// Answers how many have passed.
impl Decider<Ask> for Turnstile {
    fn decide(&self, ask: &Ask) -> Result<Decision<Turned, u32>, No> {
        match ask {
            Ask::Pay { .. } if self.paid => Err(No::PaidBefore),
            Ask::Pay { cents: 0, .. } => Ok(Decision::nothing().output(self.passed)),
            Ask::Pay { gate, cents } => {
                let paid = Decision::event(Turned::Paid { cents: *cents });
                Ok(paid.output(self.passed).hold("turnstile.paid", gate))
            }
            Ask::Pass { .. } if !self.paid => Err(No::NotPaid),
            Ask::Pass { .. } => {
                let passed = Decision::event(Turned::Passed).output(self.passed + 1);
                Ok(passed.release("turnstile.paid"))
            }
        }
    }
}
