"""The build backend of the source archive: it names the platform that has no wheel. The program is written in Rust and not built by pip."""

import platform
import sysconfig

MESSAGE = """
There is no cairn-agent package for this platform ({platform}{libc}).
There are packages for Linux with glibc 2.17 or newer and for macOS, on x86-64 and arm64; pip 20.3 or newer finds them.
On another system, build Cairn from source with Rust: @REPOSITORY@
"""


def _refuse(*_arguments, **_settings):
    libc = platform.libc_ver()
    name = " ".join(libc) if libc[0] else "no glibc: musl has no package"
    libc_text = ", " + name if sysconfig.get_platform().startswith("linux") else ""
    raise SystemExit(MESSAGE.format(platform=sysconfig.get_platform(), libc=libc_text))


get_requires_for_build_wheel = get_requires_for_build_sdist = prepare_metadata_for_build_wheel = _refuse
build_wheel = build_sdist = _refuse
