# A clean system in this process's own namespaces: sourced by the scripts beside it.

ip link set lo up
mount --make-rprivate /
mount -t proc proc /proc

# fresh_root NAME: an overlay over the clean system, at $root.
fresh_root() {
  root="$work/mount-$1"
  local layers="$work/layers-$1"
  rm -rf "$layers"
  mkdir -p "$root" "$layers"
  mount -t tmpfs -o size=3G tmpfs "$layers"
  mkdir "$layers/upper" "$layers/work"
  mount -t overlay overlay -o "lowerdir=$work/roots/$suite,upperdir=$layers/upper,workdir=$layers/work" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mkdir -p "$root/packages-old" "$root/packages-new"
  mount --bind "$old" "$root/packages-old"
  mount --bind "$new" "$root/packages-new"
  if [ -d "$work/signed" ]; then
    mkdir -p "$root/packages-signed"
    mount --bind "$work/signed" "$root/packages-signed"
  fi
}

# Runs a command in the system as root, or as its user.
in_root() {
  chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"
}
as_user() {
  chroot --userspec=tester:tester "$root" /usr/bin/env -i PATH="/home/tester/.local/bin:/usr/local/bin:/usr/bin:/bin" \
    HOME=/home/tester LC_ALL=C "$@"
}

# Prints the processes whose program's name is cairn, at whatever path.
daemons() {
  local process
  for process in /proc/[0-9]*; do
    case "$(readlink "$process/exe" 2>/dev/null)" in
      */cairn | */cairn' (deleted)') echo "${process#/proc/}" ;;
    esac
  done
}

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
