use sequor_macros::Command;

#[derive(Command)]
#[command(crate = sequor_core)]
union Bits {
    whole: u32,
    half: u16,
}

fn main() {}
