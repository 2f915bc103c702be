//! Allowed edges: dependencies point one way, and heavy ones stay behind a fence.

use super::finding::Finding;
use super::tree::{Package, Tree};

/// Each crate with the crates of ours it may depend on. Dev-dependencies are free.
const EDGES: [(&str, &[&str]); 12] = [
    ("sequor-core", &[]),
    ("sequor-macros", &[]),
    ("sequor-bus", &["sequor-core"]),
    ("sequor-memory", &["sequor-core"]),
    ("sequor-sqlite", &["sequor-core"]),
    ("sequor-postgres", &["sequor-core"]),
    ("sequor-projections", &["sequor-core"]),
    ("sequor-conformance", &["sequor-core"]),
    ("sequor-testkit", &["sequor-core", "sequor-bus"]),
    ("sequor-testserver", &[]),
    (
        "sequor",
        &[
            "sequor-core",
            "sequor-bus",
            "sequor-macros",
            "sequor-memory",
            "sequor-sqlite",
            "sequor-postgres",
            "sequor-projections",
        ],
    ),
    ("xtask", &["sequor", "sequor-testserver"]),
];

/// What an example may depend on: what a user would.
const EXAMPLE: &[&str] = &["sequor", "sequor-testkit"];

/// Where the family of a foreign crate (`tokio`, `tokio-util`, …) may or may not appear.
const FENCES: [(&str, Fence); 3] = [
    (
        "sqlx",
        Fence::OnlyIn(&[
            "sequor-sqlite",
            "sequor-postgres",
            "sequor-testserver",
            "xtask",
            "examples",
        ]),
    ),
    ("clap", Fence::OnlyIn(&["xtask", "examples"])),
    ("tokio", Fence::NeverIn(&["sequor-core", "sequor-macros"])),
];

/// A foreign crate's bounds; `examples` stands for all of them.
enum Fence {
    OnlyIn(&'static [&'static str]),
    NeverIn(&'static [&'static str]),
}

/// Every dependency is an allowed edge and stays on its side of the fences.
pub(crate) fn point_one_way(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.packages() {
        findings.extend(row_is_missing(package));
        for dependency in &package.dependencies {
            let breach = edge_breach(tree, package, dependency)
                .or_else(|| fence_breach(package, dependency));
            if let Some(advice) = breach {
                let message = format!("{} may not depend on {dependency}", package.name);
                let line = dependency_line(tree, package, dependency);
                findings.push(Finding::new(&package.manifest, line, message, advice));
            }
        }
    }
    findings
}

fn row_is_missing(package: &Package) -> Option<Finding> {
    allowed(package).is_none().then(|| {
        Finding::of_file(
            &package.manifest,
            format!("{} has no row in the table of allowed edges", package.name),
            "give it one in crates/xtask/src/tidy/edges.rs, and say in docs/ARCHITECTURE.md why the crate exists",
        )
    })
}

fn edge_breach(tree: &Tree, package: &Package, dependency: &str) -> Option<String> {
    let ours = tree.packages().iter().any(|other| other.name == dependency);
    let allowed = allowed(package)?;
    if !ours || allowed.contains(&dependency) {
        return None;
    }
    Some(match allowed {
        [] => {
            "it depends on none of our crates; move the code to where the arrow points".to_owned()
        }
        some => {
            format!("it may depend on {}; move the code to where the arrow points", some.join(", "))
        }
    })
}

fn fence_breach(package: &Package, dependency: &str) -> Option<String> {
    let place = if is_example(package) { "examples" } else { &package.name };
    let (name, fence) = FENCES.iter().find(|(name, _)| is_family(dependency, name))?;
    match fence {
        Fence::OnlyIn(places) if !places.contains(&place) => {
            Some(format!("{name} is fenced into {}", places.join(", ")))
        }
        Fence::NeverIn(places) if places.contains(&place) => Some(format!(
            "{name} stays out of {}; put a port here and the runtime elsewhere",
            places.join(", ")
        )),
        Fence::OnlyIn(_) | Fence::NeverIn(_) => None,
    }
}

fn allowed(package: &Package) -> Option<&'static [&'static str]> {
    if is_example(package) {
        return Some(EXAMPLE);
    }
    let row = EDGES.iter().find(|(name, _)| *name == package.name);
    row.map(|(_, allowed)| *allowed)
}

fn is_example(package: &Package) -> bool {
    package.manifest.starts_with("examples/")
}

fn is_family(dependency: &str, name: &str) -> bool {
    let rest = dependency.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

fn dependency_line(tree: &Tree, package: &Package, dependency: &str) -> usize {
    let starts = |line: &str| {
        let rest = line.trim_start().strip_prefix(dependency);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    let manifest = tree.file(&package.manifest);
    let index = manifest.and_then(|file| file.text.lines().position(starts));
    index.map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, point_one_way};

    fn check(manifest: &str, dependencies: &[&str]) -> String {
        let tree = Tree::default()
            .with_package("crates/sequor-core/Cargo.toml", &[])
            .with_package("crates/sequor-sqlite/Cargo.toml", &["sequor-core", "sqlx", "tokio"])
            .with_package(manifest, dependencies);
        listing(&point_one_way(&tree))
    }

    #[test]
    fn allowed_edges_and_foreign_crates_are_fine() {
        assert_eq!(check("crates/sequor-bus/Cargo.toml", &["sequor-core", "tokio", "serde"]), "");
        assert_eq!(check("crates/xtask/Cargo.toml", &["clap", "sqlx"]), "");
        assert_eq!(check("examples/billing/Cargo.toml", &["clap", "sqlx"]), "");
    }

    #[test]
    fn the_bus_does_not_know_a_driver() {
        insta::assert_snapshot!(check("crates/sequor-bus/Cargo.toml", &["sequor-core", "sequor-sqlite"]),
            @"crates/sequor-bus/Cargo.toml:2: sequor-bus may not depend on sequor-sqlite (it may depend on sequor-core; move the code to where the arrow points)");
    }

    #[test]
    fn the_macros_depend_on_none_of_ours_and_no_runtime() {
        insta::assert_snapshot!(check("crates/sequor-macros/Cargo.toml", &["sequor-core", "tokio-util"]), @"
        crates/sequor-macros/Cargo.toml:1: sequor-macros may not depend on sequor-core (it depends on none of our crates; move the code to where the arrow points)
        crates/sequor-macros/Cargo.toml:2: sequor-macros may not depend on tokio-util (tokio stays out of sequor-core, sequor-macros; put a port here and the runtime elsewhere)
        ");
    }

    #[test]
    fn an_example_depends_on_what_a_user_would() {
        insta::assert_snapshot!(check("examples/hello/Cargo.toml", &["sequor-core"]),
            @"examples/hello/Cargo.toml:1: hello may not depend on sequor-core (it may depend on sequor, sequor-testkit; move the code to where the arrow points)");
    }

    #[test]
    fn sqlx_stays_behind_its_fence() {
        insta::assert_snapshot!(check("crates/sequor-memory/Cargo.toml", &["sqlx-core"]),
            @"crates/sequor-memory/Cargo.toml:1: sequor-memory may not depend on sqlx-core (sqlx is fenced into sequor-sqlite, sequor-postgres, sequor-testserver, xtask, examples)");
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        insta::assert_snapshot!(check("crates/sequor-new/Cargo.toml", &[]),
            @"crates/sequor-new/Cargo.toml:1: sequor-new has no row in the table of allowed edges (give it one in crates/xtask/src/tidy/edges.rs, and say in docs/ARCHITECTURE.md why the crate exists)");
    }
}
