//! Nodes of a broker, and a network before them that pauses, cuts and repeats.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};

/// One of this number of messages is repeated.
const REPEATED: u64 = 50;

pub fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("a port").port()
}

fn program() -> PathBuf {
    std::env::var_os("CAIRN_NATS_SERVER").unwrap_or("nats-server".into()).into()
}

/// Python with the client of the broker, beside its program.
pub fn python() -> PathBuf {
    program().with_file_name("python")
}

/// A node that can be killed and started again.
pub struct Broker {
    child: Option<Child>,
    pub port: u16,
    args: Vec<String>,
}

impl Broker {
    pub fn start(folder: &Path) -> Self {
        Self::with(folder, free_port(), &[])
    }

    /// Starts the nodes of a cluster.
    pub fn cluster(folder: &Path, count: usize) -> Vec<Self> {
        let ports: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let routes: Vec<_> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let start = |port: &u16| {
            let (name, listen) = (format!("node-{port}"), format!("nats://127.0.0.1:{port}"));
            let more = [
                "--name",
                &name,
                "--cluster_name",
                "bench",
                "--cluster",
                &listen,
                "--routes",
                &routes.join(","),
            ];
            Self::with(&folder.join(&name), free_port(), &more)
        };
        ports.iter().map(start).collect()
    }

    fn with(folder: &Path, port: u16, more: &[&str]) -> Self {
        let store = folder.join("broker").to_string_lossy().into_owned();
        let own =
            ["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd", &store].map(String::from);
        let args = own.into_iter().chain(more.iter().map(|arg| (*arg).to_owned())).collect();
        let mut broker = Self { child: None, port, args };
        broker.resume();
        broker
    }

    pub fn resume(&mut self) {
        let mut command = Command::new(program());
        command.args(&self.args).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("nats-server: set CAIRN_NATS_SERVER"));
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "the broker does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _already_exited = child.kill();
            let _already_exited = child.wait();
        }
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A network between daemons and the broker.
pub struct Network {
    pub port: u16,
    paused: watch::Sender<bool>,
    cuts: watch::Sender<u64>,
}

impl Network {
    /// Starts to forward connections; messages of clients are repeated now and then.
    pub async fn start(to: u16) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let (paused, is_paused) = watch::channel(false);
        let (cuts, cut) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { continue };
                let (client_in, client_out) = client.into_split();
                let (server_in, server_out) = server.into_split();
                let (mut cut, paused) = (cut.clone(), is_paused.clone());
                cut.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = cut.changed() => {}
                        _ = requests(client_in, server_out, paused.clone()) => {}
                        _ = answers(server_in, client_out, paused) => {}
                    }
                });
            }
        });
        Self { port, paused, cuts }
    }

    /// Nothing passes for this time, and no connection is closed; then all are.
    pub async fn pause(&self, time: Duration) {
        self.paused.send_replace(true);
        tokio::time::sleep(time).await;
        self.paused.send_replace(false);
        self.cut();
    }

    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn until_open(paused: &mut watch::Receiver<bool>) {
    // The sender lives as long as the measure.
    let _closed = paused.wait_for(|is_paused| !is_paused).await;
}

/// Forwards the messages of a client, some of them twice.
async fn requests(
    from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut paused: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut from = BufReader::new(from);
    let mut count = 0_u64;
    loop {
        let mut frame = Vec::new();
        if from.read_until(b'\n', &mut frame).await? == 0 {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&frame).into_owned();
        let is_message = line.starts_with("HPUB ") || line.starts_with("PUB ");
        let size: usize = match line.split_whitespace().last() {
            Some(size) if is_message => size.parse().unwrap_or(0),
            _ => 0,
        };
        if is_message {
            let start = frame.len();
            frame.resize(start + size + 2, 0);
            from.read_exact(&mut frame[start..]).await?;
            count += 1;
        }
        until_open(&mut paused).await;
        to.write_all(&frame).await?;
        if is_message && count.is_multiple_of(REPEATED) {
            to.write_all(&frame).await?;
        }
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut paused: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        until_open(&mut paused).await;
        to.write_all(&buffer[..count]).await?;
    }
}
