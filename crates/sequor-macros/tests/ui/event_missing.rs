use sequor_core::Aggregate;

#[derive(Clone, Default)]
struct Account;

enum AccountEvent {
    Opened,
}

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = AccountEvent;
    fn apply(&mut self, _: &AccountEvent) {}
}

fn main() {}
