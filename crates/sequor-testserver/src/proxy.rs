//! A proxy in front of a server: it counts, and it plays the network.

mod counts;
mod line;
mod network;
mod wire;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use counts::Counts;

use crate::address::Address;
use crate::error::ServerError;
use counts::Tally;
use line::Line;
use network::Network;
use wire::Opening;

/// How long a client may take to say what it wants.
const OPENING_LIMIT: Duration = Duration::from_secs(10);

/// A port on 127.0.0.1 which leads to a server, and what happens on the way.
///
/// It counts round trips and statements, adds a delay, and fails as networks fail. It is made of
/// threads and blocking sockets, two threads a connection: sleepers are accurate to some 50 µs
/// where a timer of an asynchronous runtime has steps of 1 ms. Without a delay a round trip takes
/// some 20 µs longer than without the proxy.
///
/// The way through it is never encrypted: it answers requests for encryption with a no.
/// Dropping it ends all connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// What the proxy and its threads have in common.
#[derive(Debug)]
struct Shared {
    server: Address,
    network: Arc<Network>,
    total: Arc<Tally>,
    /// The open connections, in the order in which they came.
    lines: Mutex<BTreeMap<u64, Arc<Line>>>,
    is_closed: AtomicBool,
}

impl Proxy {
    /// Starts a proxy in front of a server: `127.0.0.1:5432`, or a URL with host and port.
    ///
    /// # Errors
    /// [`ServerError::Unusable`] if this machine gives no port or no thread. Whether the server is
    /// there shows when the first client comes.
    pub fn start(server: &str) -> Result<Self, ServerError> {
        let server = Address::parse(server);
        let what =
            || ServerError::unusable(format!("start a proxy in front of {}", server.place()));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(what())?;
        let port = listener.local_addr().map_err(what())?.port();
        let shared = Arc::new(Shared {
            server: server.clone(),
            network: Arc::default(),
            total: Arc::default(),
            lines: Mutex::default(),
            is_closed: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let acceptor = spawn("proxy", move || theirs.accept(&listener)).map_err(what())?;
        Ok(Self { port, shared, acceptor: Some(acceptor) })
    }

    /// The URL of a database behind the proxy, with the user of the URL it was started with, else
    /// `postgres`.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.shared.server.url_at(self.port, database)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What went through, over all connections, also those that have ended.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.total.counts()
    }

    /// What went through each connection that is open, in the order in which they came.
    #[must_use]
    pub fn counts_of_connections(&self) -> Vec<Counts> {
        self.shared.lines().values().map(|line| line.tally().counts()).collect()
    }

    /// Starts counting from 0, also for the connections that are open.
    pub fn reset(&self) {
        self.shared.total.reset();
        self.shared.lines().values().for_each(|line| line.tally().reset());
    }

    /// Holds each answer back for this long, from now on; 0, the start, means not at all.
    ///
    /// It is the time that a round trip takes on the simulated network. What follows in the same
    /// answer is not held back again. A request that is sent while an earlier one is still being
    /// answered waits anew, where a real network would overlap the two.
    pub fn delay(&self, delay: Duration) {
        self.shared.network.set_delay(delay);
    }

    /// Ends all connections for both sides, as a restarted network device does. New ones may come.
    pub fn cut(&self) {
        self.shared.lines().values().for_each(|line| line.cut());
    }

    /// Loses the answer to a request that is still to come: the `n`-th from now, over all connections,
    /// counted as [`Counts::round_trips`] are.
    ///
    /// The server gets the request and finishes it; then the connection ends, and the client has not
    /// seen a byte of the answer. 1 is the next request; 0 takes the order back.
    pub fn cut_before_answer(&self, n: u64) {
        self.shared.network.set_loses(n);
    }

    /// Stops passing anything on, in both directions. Nobody is told: connections stay open.
    pub fn pause(&self) {
        self.shared.network.set_paused(true);
    }

    /// Passes on again, beginning with what has come in the meantime.
    pub fn resume(&self) {
        self.shared.network.set_paused(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.resume();
        // Wakes the acceptor; if that fails, there is none to wake.
        let woken = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
        self.cut();
    }
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        let clients = listener.incoming().take_while(|_| !self.is_closed());
        for (id, client) in (0..).zip(clients) {
            // A client that has left again, or for whom there is no thread, finds itself cut off.
            let Ok(client) = client else { continue };
            let shared = Arc::clone(&self);
            let _ = spawn("requests", move || drop(shared.serve(id, client)));
        }
    }

    /// Connects a client with the server, and returns when one of them has ended.
    fn serve(&self, id: u64, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        client.set_read_timeout(Some(OPENING_LIMIT))?;
        let opening = Opening::read(&mut client)?;
        client.set_read_timeout(None)?;
        self.network.pass();
        let mut server = TcpStream::connect(self.server.place())?;
        server.set_nodelay(true)?;
        let opening = match opening {
            Opening::Session(opening) => opening,
            Opening::Cancel(request) => {
                server.write_all(&request)?;
                // The server has taken note when it closes; the client waits for that.
                return io::copy(&mut server, &mut client).map(drop);
            }
        };
        let line = Line::new(
            (client, server.try_clone()?),
            Arc::clone(&self.network),
            Arc::clone(&self.total),
        );
        let line = Arc::new(line);
        self.lines().insert(id, Arc::clone(&line));
        // Whoever closes the proxy cuts what is listed, and we are, or finds us here.
        let result = if self.is_closed() { Ok(()) } else { run(&line, &mut server, &opening) };
        line.cut();
        self.lines().remove(&id);
        result
    }
}

fn run(line: &Arc<Line>, server: &mut TcpStream, opening: &[u8]) -> io::Result<()> {
    server.write_all(opening)?;
    let answers = Arc::clone(line);
    let answers = spawn("answers", move || {
        // However it ends, the other direction has nothing left to do.
        let _ = answers.pass_answers();
        answers.cut();
    })?;
    let result = line.pass_requests();
    line.cut();
    // A thread that has panicked has ended too.
    let _ = answers.join();
    result
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}
