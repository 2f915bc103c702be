//! `cargo xtask tidy`: the project's taste, as tests over its files.

mod adr;
mod blobs;
mod budgets;
mod drivers;
mod edges;
mod finding;
mod hygiene;
mod links;
mod markdown;
mod migrations;
mod names;
mod released;
mod root;
mod rust;
mod sql;
pub(crate) mod tree;

use anyhow::{Result, bail};

use self::finding::{Finding, listing};
use self::tree::Tree;
use crate::workspace::Workspace;

/// Run the tidy tests alone: the project's own rules, in about a second
///
/// A finding reads `path:line: what is wrong (what to do)`. The rules:
///
///   root        nothing at the root but what the layout names
///   edges       crates depend only where the arrows allow; sqlx, clap, tokio stay fenced in
///   budgets     files of at most 600 lines
///   names       no manager, helper, util, common, base, impl
///   drivers     the same file names in both SQL drivers, apart from declared differences
///   migrations  the same numbers in each dialect, no holes, released ones unchanged
///   links       every path named in docs/ and README.md exists
///   adr         docs/adr/README.md lists every decision
///   blobs       no file above 250 KB
///   sql         one statement, one .sql file, one place that uses it; no SQL inside Rust
///   hygiene     no leftovers such as todo!() and dbg!(), no sleeping tests
///
/// Each rule is a file in crates/xtask/src/tidy/ that says why it is there.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {}

/// A rule looks at the tree and says what it found.
type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: [Rule; 11] = [
    root::only_what_the_layout_names,
    edges::point_one_way,
    budgets::files_stay_small,
    names::nouns_hold_verbs_do,
    drivers::bear_the_same_names,
    migrations::only_grow,
    links::named_paths_exist,
    adr::index_is_complete,
    blobs::nothing_large,
    sql::one_statement_one_file,
    hygiene::nothing_left_over,
];

/// Runs every rule over the files that git knows or would take.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let tree = Tree::read(workspace)?;
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    findings.sort();
    if findings.is_empty() {
        let (rules, files) = (RULES.len(), tree.files().len());
        println!("tidy: {rules} rules over {files} files found nothing");
        return Ok(());
    }
    println!("{}", listing(&findings));
    bail!("tidy has {} findings (see above)", findings.len())
}
