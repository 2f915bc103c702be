use sequor_macros::Event;

#[derive(Event)]
#[event(crate = sequor_core)]
union Bits {
    whole: u32,
    half: u16,
}

fn main() {}
