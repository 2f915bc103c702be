//! No server outlives the process that started it.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sequor_testserver::Cluster;

/// Set in the process that is to be killed.
const VICTIM: &str = "SEQUOR_TESTSERVER_VICTIM";

/// How long a server may take to notice. The rest of the machine may be busy.
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn the_server_and_its_folder_go_when_the_process_is_killed() {
    if env::var_os(VICTIM).is_some() {
        return live_until_killed();
    }
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["the_server_and_its_folder_go", "--nocapture"])
        .env(VICTIM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let told = lines.map(Result::unwrap).find_map(|line| line.split_once("cluster ").map(owned));
    let told = told.unwrap();
    let (address, folder) = told.split_once(' ').unwrap();
    assert!(TcpStream::connect(address).is_ok() && Path::new(folder).is_dir());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let start = Instant::now();
    while TcpStream::connect(address).is_ok() || Path::new(folder).exists() {
        assert!(start.elapsed() < LIMIT, "the server at {address} in {folder} is still there");
        std::thread::yield_now();
    }
}

fn owned((_, told): (&str, &str)) -> String {
    told.to_owned()
}

/// Tells where the cluster is, and waits for the end.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn live_until_killed() {
    let cluster = Cluster::start().unwrap();
    println!("\ncluster {} {}", cluster.address(), cluster.folder().display());
    // Nobody writes to it and we are killed before it closes.
    std::io::stdin().lines().for_each(drop);
}
