# disklimit: what the disk gives, by fio at its best block size and depth
#
# fio copies nothing and starts nothing within its time, and that time has no sync in it: a limit, not a
# competitor. The best of a few settings is found by a first pass and then measured in the same rounds as
# everything else, writing a new file (as a save does) and rewriting blocks that are allocated already.
#
# Its buffers are registered and in huge pages, as ours are: in small pages each request falls into
# hundreds of segments, and fio is slower than the disk by half.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import statistics
import subprocess

from rounds import Entry, RunError, rate, say
from setting import MIB

# (KiB in a block, depth)
CANDIDATES = [(1024, 4), (1024, 16), (2048, 8), (4096, 4), (4096, 8)]
PASSES = 3

# By the C library, since fio has huge pages only where some were set aside beforehand.
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


class DiskLimit:
    def __init__(self, setting):
        self.setting = setting
        self.path = setting.folder / "fio"
        self.candidates = CANDIDATES[:1] if setting.quick else CANDIDATES
        self.passes = 1 if setting.quick else PASSES

    def run(self, kind, block, depth, path):
        size = self.setting.bytes // (block * 1024) * block * 1024
        if kind == "fresh" and os.path.exists(path):
            os.unlink(path)
        if kind == "rewrite" and not os.path.exists(path):
            self.run("fresh", block, depth, path)
        subprocess.run(["sync", "--file-system", self.setting.folder], check=False)
        command = [
            *("fio", "--output-format=json", "--name=limit", f"--filename={path}", "--direct=1"),
            *("--ioengine=io_uring", f"--bs={block}k", f"--iodepth={depth}", f"--size={size}"),
            *("--fallocate=none", "--overwrite=0", "--allow_file_create=1", "--fixedbufs=1"),
            f"--rw={'read' if kind == 'read' else 'write'}",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **HUGE}
        )
        if done.returncode != 0:
            raise RunError((done.stderr.strip().splitlines() or ["fio failed"])[-1])
        job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
        told = job["read" if kind == "read" else "write"]
        if not told["runtime"] or told["io_bytes"] != size:
            raise RunError("fio moved too little for a figure")
        return {"bytes": told["io_bytes"], "seconds": told["runtime"] / 1000}

    def best(self, kind, path):
        """The block size and depth with the best median of a first pass."""
        found = {}
        for _ in range(self.passes):
            for candidate in self.candidates:
                found.setdefault(candidate, []).append(rate(self.run(kind, *candidate, path)))
        best = max(found, key=lambda candidate: statistics.median(found[candidate]))
        say(f"  fio, {kind}: {best[0]} KiB, depth {best[1]}")
        return best

    def entries(self, *kinds, path=None):
        """One for each kind; none if fio is missing or can't."""
        if self.setting.bytes < 4 * MIB or not self.setting.have("fio", "fio"):
            return []
        titles = {"fresh": "new file", "rewrite": "rewriting", "read": "reading"}
        made = []
        for kind in kinds:
            target = path or self.path
            try:
                block, depth = self.best(kind, target)
            except RunError as error:
                self.setting.notice(f"fio ({titles[kind]}) is left out: {error}")
                continue
            made.append(
                Entry(
                    f"fio-{kind}",
                    f"limit: fio, {titles[kind]}, {block // 1024} MiB × {depth}",
                    lambda verify, kind=kind, block=block, depth=depth: self.run(kind, block, depth, target),
                )
            )
        return made

    def close(self):
        if self.path.exists():
            self.path.unlink()
