//! Tells cargo that the migrations, which the crate carries inside, lie outside of its folder.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations/sqlite");
}
