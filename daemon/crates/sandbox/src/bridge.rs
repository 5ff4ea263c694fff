//! The way out of a closed network: a loopback port inside the sandbox, each of whose connections
//! is carried to the socket of a proxy outside.
#![cfg(target_os = "linux")]

use std::{
    io,
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::spec::{PROXY_PORT, PROXY_SOCKET};

/// Most connections at once; further ones are closed at once.
const MAX_CONNECTIONS: usize = 128;

/// Listens on the proxy's port and leaves a process behind that serves it. The caller becomes the
/// command; the serving process is no child of it, so that a command that waits for its children
/// never waits for this one.
///
/// # Errors
/// The step that failed.
pub(super) fn start() -> Result<(), String> {
    let failed = |e: io::Error| format!("proxy port: {e}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).map_err(failed)?;
    let Some(middle) = fork().map_err(failed)? else {
        // The orphan is adopted by the first process of the sandbox, which ends with the command.
        match fork() {
            Ok(None) => serve(&listener),
            _ => exit(),
        }
    };
    rustix::process::waitpid(Some(middle), rustix::process::WaitOptions::empty())
        .map(drop)
        .map_err(|e| failed(e.into()))
}

/// Returns the child's id in the parent, `None` in the child.
#[expect(unsafe_code, reason = "no library forks without running another program")]
fn fork() -> io::Result<Option<rustix::process::Pid>> {
    // SAFETY: the helper has a single thread, so that no other one can have locked anything.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(rustix::process::Pid::from_raw(child)),
    }
}

fn exit() -> ! {
    std::process::exit(0)
}

fn serve(listener: &TcpListener) -> ! {
    // Its own session: a signal to the group of the command does not reach it.
    let _already_leader = rustix::process::setsid();
    // The command's output ends with the command.
    if let Ok(nothing) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _unchanged = rustix::stdio::dup2_stdin(&nothing);
        let _unchanged = rustix::stdio::dup2_stdout(&nothing);
        let _unchanged = rustix::stdio::dup2_stderr(&nothing);
    }
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((client, _)) = listener.accept() else { continue };
        if open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let counter = Arc::clone(&open);
        let started = std::thread::Builder::new().spawn(move || {
            // The client sees a broken connection as such.
            let _broken = carry(&client);
            counter.fetch_sub(1, Ordering::SeqCst);
        });
        if started.is_err() {
            open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Carries bytes in both directions until both ends have finished.
fn carry(client: &TcpStream) -> io::Result<()> {
    let proxy = UnixStream::connect(PROXY_SOCKET)?;
    std::thread::scope(|scope| {
        let up = scope.spawn(|| {
            let _broken = io::copy(&mut &*client, &mut &proxy);
            proxy.shutdown(Shutdown::Write)
        });
        let _broken = io::copy(&mut &proxy, &mut &*client);
        let _closed = client.shutdown(Shutdown::Both);
        let _closed = up.join();
    });
    Ok(())
}
