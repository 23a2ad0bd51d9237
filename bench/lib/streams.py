# streams: workloads without a VM: a driver feeds or drains the helper, the library, or what people use instead
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import subprocess

from rounds import Entry, RunError, Workload
from setting import MIB, STOCK

LIMIT = 300

# How the peers are called, by what they do. The stream is their stdin or stdout and the file the other;
# @N is its name. mbuffer opens with O_DIRECT whatever it opens itself. Memory and block sizes are what
# their manuals suggest for speed; more did not help them.
MBUFFER = ["mbuffer", "-q", "-s", "1M", "-m", "64M"]
SOCAT = ["socat", "-u", "-b", "1048576", "STDIN", "STDOUT"]
DD = ["dd", "bs=1M", "status=none"]
PEERS = {
    "save-direct": {
        "dd": ("dd bs=1M oflag=direct", [*DD, "iflag=fullblock", "oflag=direct"]),
        "mbuffer": ("mbuffer, O_DIRECT", [*MBUFFER, "-f", "-o", "@N"]),
    },
    "save-cached": {
        "cat": ("cat", ["cat"]),
        "dd": ("dd bs=1M", [*DD, "iflag=fullblock"]),
        "mbuffer": ("mbuffer", MBUFFER),
        "socat": ("socat", SOCAT),
    },
    "restore-direct": {
        "dd": ("dd bs=1M iflag=direct", [*DD, "iflag=direct"]),
        "mbuffer": ("mbuffer, O_DIRECT", [*MBUFFER, "-i", "@N"]),
    },
    "restore-cached": {
        "cat": ("cat", ["cat"]),
        "dd": ("dd bs=1M", DD),
        "mbuffer": ("mbuffer", MBUFFER),
        "socat": ("socat", SOCAT),
    },
}


def drive(setting, program, *words):
    """Runs a driver; returns its sample."""
    command = [str(word) for word in (program, *words)]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT + 60,
        check=False,
        env={**os.environ, "VMSPOOL_IOHELPER": str(setting.helper)},
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("{")]
    said = (done.stderr.strip().splitlines() or [""])[-1]
    if not told:
        raise RunError(said or f"{command[0]} ended with {done.returncode}")
    sample = json.loads(told[-1])
    if not sample.pop("ok"):
        raise RunError(f"{sample['error']} {said}".strip())
    return sample


class Streams:
    """Makes the workloads; a Setting says where and how much."""

    def __init__(self, setting):
        self.setting = setting
        self.stream = setting.folder / "stream"

    def source(self):
        """The file that restores read, made when it is needed first."""
        if not self.stream.exists():
            setting = self.setting
            command = [setting.helperdrive, "--file", self.stream, "--bytes", str(setting.bytes), "--make"]
            subprocess.run(command, check=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        return self.stream

    def _options(self, path, pattern, verify, size=None, restore=None):
        words = ["--file", path, "--pattern", pattern, "--limit", LIMIT]
        if restore:
            words += ["--restore", "--page-cache", restore]
        else:
            words += ["--bytes", size or self.setting.bytes]
        if verify and str(path) != "/dev/null":
            words += ["--verify"]
        return words

    def helper(self, name, title, program, path, pattern="qemu", direct=False, more=(), **where):
        """An iohelper, or anything else that copies stdin to stdout, on a pipe of 1 MiB like libvirtd's."""

        def run(verify):
            words = self._options(path, pattern, verify, **where)
            if direct:
                words.append("--direct")
            return drive(self.setting, self.setting.helperdrive, *words, *more, "--", *program)

        return Entry(name, title, run)

    def library(self, name, title, path, pattern="qemu", more=(), **where):
        def run(verify):
            words = self._options(path, pattern, verify, **where)
            return drive(self.setting, self.setting.wrapdrive, *words, *more)

        return Entry(name, title, run)

    def _ours(self, path, direct, **where):
        """The three that each workload has."""
        entries = []
        if self.setting.have(STOCK, "libvirt-daemon"):
            entries.append(
                self.helper("stock", "libvirt_iohelper", [STOCK, path, "@F"], path, direct=direct, **where)
            )
        entries.append(
            self.helper(
                "drop-in",
                "vmspool_iohelper in its place",
                [self.setting.helper, path, "@F"],
                path,
                direct=direct,
                **where,
            )
        )
        more = ["--bypass-cache"] if direct else []
        entries.append(self.library("library", "libvmspool", path, more=more, **where))
        return entries

    def _peers(self, kind, path, names=None, **where):
        for name, (title, command) in PEERS[kind].items():
            package = {"dd": "coreutils", "cat": "coreutils"}.get(name, name)
            if (names is None or name in names) and self.setting.have(name, package):
                yield self.helper(name, title, command, path, **where)

    def save(self, name, title, path, kind, pattern="qemu", names=None, rungs=False, limit=list):
        """Into a new file (or /dev/null); direct or cached by @kind. limit(): the entries for the disk itself."""
        where = {"pattern": pattern}
        entries = self._ours(path, kind == "save-direct", **where)
        if rungs:
            entries += [
                self.library(mode, f"libvmspool, {mode}", path, more=[f"--cache={mode}"], **where)
                for mode in ("dontcache", "paced", "cached")
            ]
        entries += [*self._peers(kind, path, names, **where), *limit()]
        return Workload(name, title, entries, close=lambda: remove(path))

    def restore(self, name, title, kind, state, pattern="qemu", names=None, limit=list):
        path = self.source()
        where = {"pattern": pattern, "restore": state}
        entries = self._ours(path, kind == "restore-direct", **where)
        entries += [*self._peers(kind, path, names, **where), *limit()]
        return Workload(name, title, entries)

    def startup(self, name, title, direct):
        path = self.setting.folder / "small"
        entries = self._ours(path, direct, pattern="65536", size=MIB)
        return Workload(name, title, entries, time=True, repeat=5, close=lambda: remove(path))


def remove(path):
    if str(path) != "/dev/null" and os.path.exists(path):
        os.unlink(path)
