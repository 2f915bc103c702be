use sequor_macros::Command;

#[derive(Command)]
#[command(crate = sequor_core)]
enum AccountCommand {
    Open,
}

fn main() {}
