//! The process that will be killed.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use crate::domain;

/// How many commands are under way at a time.
pub(crate) const CALLERS: u64 = 16;

/// What the child is to do.
pub(crate) struct Job {
    pub(crate) path: PathBuf,
    pub(crate) round: u64,
}

impl Job {
    const PATH: &str = "SEQUOR_CRASH_PATH";
    const ROUND: &str = "SEQUOR_CRASH_ROUND";

    /// The job, if this process is a child.
    pub(crate) fn from_environment() -> Option<Self> {
        let path = std::env::var_os(Self::PATH)?.into();
        let round = std::env::var(Self::ROUND).ok()?.parse().ok()?;
        Some(Self { path, round })
    }

    /// Starts a child with this job.
    pub(crate) fn spawn(&self) -> std::io::Result<std::process::Child> {
        std::process::Command::new(std::env::current_exe()?)
            .env(Self::PATH, &self.path)
            .env(Self::ROUND, self.round.to_string())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .spawn()
    }
}

/// Executes commands until killed, and acknowledges each on stdout: its number, the command's id,
/// its output.
pub(crate) async fn run(job: Job) {
    let service = domain::open(&job.path).await;
    let numbers = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (service, numbers) = (service.clone(), Arc::clone(&numbers));
        callers.spawn(async move {
            loop {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                let receipt = domain::execute(&service, job.round, number).await;
                let receipt = receipt.expect("a fresh command on a sound file");
                let output = receipt.output.expect("an output");
                let line = format!("{number} {} {output}\n", receipt.command_id);
                std::io::stdout().lock().write_all(line.as_bytes()).expect("the parent listens");
            }
        });
    }
    while callers.join_next().await.is_some() {}
}
