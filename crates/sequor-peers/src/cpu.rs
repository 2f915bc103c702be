//! Processor time: what does not depend on who else uses the machine.

use std::fs;
use std::time::Duration;

/// What Linux counts processor time in, for all that look at it.
const TICK: Duration = Duration::from_millis(10);

/// Places in `/proc/…/stat`, counted behind the name of the program, which may have spaces in it.
mod places {
    pub(super) const PARENT: usize = 1;
    /// Own time in user and system mode, and that of children that have ended.
    pub(super) const TIMES: [usize; 4] = [11, 12, 13, 14];
}

/// What this process has used so far, with a server and its children if there is one; nothing where
/// `/proc` is not there.
pub(crate) fn used(server: Option<u32>) -> Duration {
    let ours = stat("self").map_or(0, |stat| ticks(&stat, 2));
    let ticks = ours + server.map_or(0, of_server);
    TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
}

fn of_server(server: u32) -> u64 {
    let itself = stat(&server.to_string()).map_or(0, |stat| ticks(&stat, 4));
    let children = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let stat = stat(entry.file_name().to_str()?)?;
        let is_child = stat.get(places::PARENT) == Some(&u64::from(server));
        is_child.then(|| ticks(&stat, 2))
    });
    itself + children.sum::<u64>()
}

fn ticks(stat: &[u64], kinds: usize) -> u64 {
    places::TIMES.iter().take(kinds).filter_map(|place| stat.get(*place)).sum()
}

/// The numbers behind the name; 0 for what is none.
fn stat(process: &str) -> Option<Vec<u64>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind) = text.rsplit_once(") ")?;
    Some(behind.split(' ').map(|field| field.parse().unwrap_or(0)).collect())
}
