//! System calls that commands do not need and many escapes use.
#![cfg(target_os = "linux")]

use std::{
    collections::{BTreeMap, hash_map::RandomState},
    ffi::CString,
    hash::{BuildHasher as _, Hasher as _},
    os::unix::ffi::OsStringExt as _,
};

use seccompiler::{
    SeccompAction,
    SeccompCmpArgLen::{Dword, Qword},
    SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Calls that are refused with any arguments.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_pidfd_getfd,
];

/// Flags of `clone` that create a namespace.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Terminal requests that inject input as if the user had typed it.
const TERMINAL: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Socket families that may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Only families that are local to this machine.
    Local,
    /// Also those of the network, or of a network namespace without connections.
    Network,
}

/// Calls with separate numbers in the x32 interface.
const X32: &[(libc::c_long, libc::c_long)] = &[
    (libc::SYS_ioctl, 514),
    (libc::SYS_ptrace, 521),
    (libc::SYS_kexec_load, 528),
    (libc::SYS_process_vm_readv, 539),
    (libc::SYS_process_vm_writev, 540),
    (libc::SYS_execve, 520),
    (libc::SYS_execveat, 545),
];

/// Bits of a socket's type without its flags.
const SOCKET_TYPE: u64 = 0xf;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Forbids these calls to this process and its descendants. Without `named_sockets` no Unix socket
/// can be connected by its name: a filter sees the family of a socket, and not the path that it is
/// connected to.
///
/// # Errors
/// The error of the kernel or of the filter compiler.
pub(super) fn apply(sockets: Sockets, named_sockets: bool) -> Result<(), String> {
    let arch = std::env::consts::ARCH.try_into().map_err(|e| format!("seccomp: {e}"))?;
    let denied = denied(sockets, named_sockets)?;
    for (rules, errno) in [(denied, libc::EPERM), (absent(), libc::ENOSYS)] {
        install(rules, errno, arch)?;
    }
    Ok(())
}

/// Makes calls that match the rules fail with an error, in this process and its descendants.
fn install(rules: Rules, errno: libc::c_int, arch: seccompiler::TargetArch) -> Result<(), String> {
    let errno = u32::try_from(errno).map_err(|e| e.to_string())?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch);
    let program: seccompiler::BpfProgram =
        filter.and_then(TryInto::try_into).map_err(|e| format!("seccomp: {e}"))?;
    seccompiler::apply_filter(&program).map_err(|e| format!("seccomp: {e}"))
}

fn when(argument: u8, op: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    SeccompCondition::new(argument, Dword, op, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(|e| format!("seccomp: {e}"))
}

/// Adds a call by its number, and by its number in the x32 interface of the same processor.
fn add(rules: &mut Rules, call: libc::c_long, conditions: &[SeccompRule]) {
    rules.insert(call, conditions.to_vec());
    if cfg!(target_arch = "x86_64") {
        let own = X32.iter().find(|(usual, _)| *usual == call).map_or(call, |(_, own)| *own);
        rules.insert(own | 0x4000_0000, conditions.to_vec());
    }
}

fn denied(sockets: Sockets, named_sockets: bool) -> Result<Rules, String> {
    let mut rules = Rules::new();
    for call in REFUSED {
        add(&mut rules, *call, &[]);
    }
    let flags = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        when(0, SeccompCmpOp::MaskedEq(flag), flag)
    });
    add(&mut rules, libc::SYS_clone, &flags.collect::<Result<Vec<_>, _>>()?);
    let requests = TERMINAL.iter().map(|request| when(1, SeccompCmpOp::Eq, *request));
    add(&mut rules, libc::SYS_ioctl, &requests.collect::<Result<Vec<_>, _>>()?);
    // Limits of another process.
    add(&mut rules, libc::SYS_prlimit64, &[when(0, SeccompCmpOp::Ne, 0)?]);
    // All families except these are refused.
    let allowed: &[libc::c_int] = match sockets {
        Sockets::Local => &[libc::AF_UNIX],
        Sockets::Network => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let others = |allowed: &mut dyn Iterator<Item = libc::c_int>| {
        let other = |family: libc::c_int| {
            SeccompCondition::new(0, Dword, SeccompCmpOp::Ne, u64::from(family.cast_unsigned()))
        };
        let conditions: Result<Vec<_>, _> = allowed.map(other).collect();
        match conditions {
            // A rule needs a condition: without an allowed family all are refused.
            Ok(conditions) if conditions.is_empty() => Ok(vec![]),
            conditions => conditions.and_then(SeccompRule::new).map(|rule| vec![rule]),
        }
        .map_err(|e| format!("seccomp: {e}"))
    };
    let is_named = |family: &libc::c_int| named_sockets || *family != libc::AF_UNIX;
    let single = others(&mut allowed.iter().copied().filter(is_named))?;
    add(&mut rules, libc::SYS_socket, &single);
    // A pair has no name, and serves the processes of one command among themselves.
    let mut pairs = others(&mut allowed.iter().copied())?;
    if !named_sockets {
        // One for datagrams can still send to any name.
        let datagrams = u64::from(libc::SOCK_DGRAM.cast_unsigned());
        pairs.push(when(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), datagrams)?);
    }
    add(&mut rules, libc::SYS_socketpair, &pairs);
    Ok(rules)
}

/// Returns the calls that report to be missing, so that libraries use the older one, whose
/// arguments can be examined.
fn absent() -> Rules {
    let mut rules = Rules::new();
    add(&mut rules, libc::SYS_clone3, &[]);
    rules
}

/// Replaces this process by a program that can start no other: from here on a program is started
/// only by a call whose sixth argument, which the kernel ignores, is a secret random number.
/// Returns only on failure, with the reason.
pub(super) fn become_sole(argv: &[String]) -> String {
    let secret = RandomState::new().build_hasher().finish();
    let forbid = || -> Result<(), String> {
        let arch = std::env::consts::ARCH.try_into().map_err(|e| format!("seccomp: {e}"))?;
        let other = SeccompCondition::new(5, Qword, SeccompCmpOp::Ne, secret);
        let other =
            other.and_then(|c| SeccompRule::new(vec![c])).map_err(|e| format!("seccomp: {e}"))?;
        let mut rules = Rules::new();
        add(&mut rules, libc::SYS_execve, &[other]);
        add(&mut rules, libc::SYS_execveat, &[]);
        install(rules, libc::EPERM, arch)
    };
    if let Err(why) = forbid() {
        return why;
    }
    let text = |words: &mut dyn Iterator<Item = Vec<u8>>| {
        words.map(CString::new).collect::<Result<Vec<_>, _>>()
    };
    let args = text(&mut argv.iter().map(|word| word.clone().into_bytes()));
    let env = text(
        &mut std::env::vars_os()
            .map(|(name, value)| [name.into_vec(), b"=".to_vec(), value.into_vec()].concat()),
    );
    match (args, env) {
        (Ok(args), Ok(env)) => {
            format!("program {} cannot be run: {}", argv.concat(), execute(&args, &env, secret))
        }
        _ => "an argument contains a NUL byte".into(),
    }
}

#[expect(unsafe_code, reason = "the library's exec has no sixth argument")]
fn execute(args: &[CString], env: &[CString], secret: u64) -> std::io::Error {
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (args, env) = (pointers(args), pointers(env));
    let Some(program) = args.first().filter(|p| !p.is_null()) else {
        return std::io::Error::from(std::io::ErrorKind::InvalidInput);
    };
    // SAFETY: both lists end with a null pointer and point to strings that live as long as this
    // call, which returns only on failure.
    unsafe {
        libc::syscall(
            libc::SYS_execve,
            *program,
            args.as_ptr(),
            env.as_ptr(),
            0_usize,
            0_usize,
            secret,
        );
    }
    std::io::Error::last_os_error()
}
