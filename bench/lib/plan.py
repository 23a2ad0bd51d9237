# plan: which workloads there are, and what is needed for them on this host
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import functools
import pathlib
import subprocess

import daemons
import streams
import vsptest
from disklimit import DiskLimit
from guests import Guests
from setting import MIB

# (suffix of the name, how the driver is told, words); the peers that are in it, None for all
PATTERNS = [
    ("", "qemu", "QEMU's pattern", None),
    ("-64k", "65536", "writes of 64 KiB", ["cat", "dd"]),
    ("-1m", str(MIB), "writes of 1 MiB", ["cat", "dd"]),
]

# These use no program or path of code that others do not.
NOT_QUICK = ["*-64k", "*-1m", "virsh-*-cached", "virsh-*-cold", "virsh-*-hot"]


def _saves(table, flow, kind, title, file, **more):
    """One target in each pattern; @more is for QEMU's only."""
    by = "save-direct" if kind == "save-direct" else "save-cached"
    for suffix, pattern, words, names in PATTERNS:
        name = f"{kind}{suffix}"
        extra = {} if suffix else more
        table[name] = functools.partial(
            flow.save, name, f"{title}, {words}", file, by, pattern, names, **extra
        )


def _memory_file(setting, shared):
    """On a tmpfs of our own; None where that can't be mounted."""
    if not vsptest.may_mount():
        setting.notice("tmpfs is left out: mounting one takes root")
        return None
    folder = setting.folder / "tmpfs"
    folder.mkdir()
    size = 2 * setting.bytes + 16 * MIB
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "vspbench", folder], check=True)
    shared.callback(subprocess.run, ["umount", folder], check=False)
    return folder / "file"


def _streams(setting, shared, table):
    flow = streams.Streams(setting)
    disk = shared.enter_context(contextlib.closing(DiskLimit(setting)))
    file = setting.folder / "file"

    _saves(
        *(table, flow, "save-direct", "O_DIRECT save", file),
        limit=lambda: disk.entries("fresh", "rewrite"),
    )
    _saves(table, flow, "save-cached", "cached save with the sync", file, rungs=True)
    _saves(table, flow, "null", "to /dev/null", pathlib.Path("/dev/null"))
    in_memory = _memory_file(setting, shared)
    if in_memory:
        _saves(table, flow, "tmpfs", "save into tmpfs", in_memory)

    def restore(name, title, kind, state, **more):
        table[name] = functools.partial(flow.restore, name, title, f"restore-{kind}", state, **more)

    larger = {"pattern": str(MIB), "names": ["cat", "dd"]}
    restore(
        *("restore-direct", "O_DIRECT restore, QEMU's reads", "direct", "cold"),
        limit=lambda: disk.entries("read", path=flow.source()),
    )
    restore("restore-direct-1m", "O_DIRECT restore, reads of 1 MiB", "direct", "cold", **larger)
    restore("restore-cold", "restore of a file that is not in the page cache", "cached", "cold")
    restore("restore-hot", "restore of a file that is in the page cache", "cached", "hot")
    restore("restore-hot-1m", "the same, reads of 1 MiB", "cached", "hot", **larger)

    for name, words, direct in (
        ("startup-direct", "a file of 1 MiB, O_DIRECT", True),
        ("startup-cached", "a file of 1 MiB, cached, with the sync", False),
    ):
        table[name] = functools.partial(flow.startup, name, words, direct)
    return flow


def _guests(setting, shared, table):
    if not setting.have(vsptest.QEMU, "qemu-system-x86"):
        return
    one = shared.enter_context(contextlib.closing(Guests(setting)))
    words = "real QEMU, guest's memory full:"

    def save(name, title, direct):
        table[name] = functools.partial(one.save, name, f"{words} {title}", direct)

    def restore(name, title, state, direct):
        table[name] = functools.partial(one.restore, name, f"{words} {title}", state, direct)

    save("qemu-save-direct", "direct save", True)
    save("qemu-save-cached", "cached save with the sync", False)
    restore("qemu-restore-direct", "direct restore", "cold", True)
    restore("qemu-restore-cold", "restore, not in the page cache", "cold", False)
    restore("qemu-restore-hot", "restore, in the page cache", "hot", False)


def _daemons(setting, shared, table):
    if not setting.have(vsptest.QEMU, "qemu-system-x86") or not daemons.possible(setting):
        return
    one = shared.enter_context(contextlib.closing(daemons.Daemons(setting)))
    bypass = ["--bypass-cache"]

    def save(name, title, options):
        table[name] = functools.partial(one.save, name, title, options)

    def restore(name, title, state, options):
        table[name] = functools.partial(one.restore, name, title, state, options)

    save("virsh-save-direct", "virsh save --bypass-cache", bypass)
    save("virsh-save-cached", "virsh save", [])
    restore("virsh-restore-direct", "virsh restore --bypass-cache", "cold", bypass)
    restore("virsh-restore-cold", "virsh restore, not in the page cache", "cold", [])
    restore("virsh-restore-hot", "virsh restore, in the page cache", "hot", [])


def make(setting, shared):
    """name -> a function that makes the workload, and the Streams. What has to be undone is put on @shared.

    Making a workload may take its time; the names alone do not."""
    table = {}
    flow = _streams(setting, shared, table)
    _guests(setting, shared, table)
    _daemons(setting, shared, table)
    return table, flow
