# setting: where and with what a run of the benchmark is made, and what there is to say about it
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import dataclasses
import datetime
import os
import pathlib
import platform
import re
import shutil
import subprocess

MIB = 1 << 20
STOCK = pathlib.Path("/usr/lib/libvirt/libvirt_iohelper")


@dataclasses.dataclass
class Setting:
    source: pathlib.Path
    build: pathlib.Path
    folder: pathlib.Path  # for the files that are moved; on the disk that is measured
    rounds: int
    bytes: int
    memory: int  # MiB of the guest
    quick: bool
    notices: list = dataclasses.field(default_factory=list)

    @property
    def helper(self):
        return self.build / "src/iohelper/vmspool_iohelper"

    @property
    def tool(self):
        return self.build / "tools/vmspool"

    @property
    def helperdrive(self):
        return self.build / "bench/helperdrive"

    @property
    def wrapdrive(self):
        return self.build / "bench/wrapdrive"

    def notice(self, text):
        if text not in self.notices:
            self.notices.append(text)
            print(f"note: {text}", flush=True)

    def have(self, program, package):
        """Whether a peer is there; if not it is left out, and that is said."""
        if shutil.which(str(program)):
            return True
        self.notice(f"{program} is not there (Debian: {package}) and is left out")
        return False


def _read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""


def _version(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return ""
    found = re.search(r"\d+\.\d+(\.\d+)?|\b\d{8}\b", done.stdout + done.stderr)
    return found.group() if found else ""


def _filesystem(path):
    command = ["findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", "--target", path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return " ".join(done.stdout.split())


def _disk(path):
    """What the kernel says about the disk below a path."""
    device = os.stat(path).st_dev
    queue = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    if not (queue / "queue").exists():
        queue = queue.parent
    words = [queue.name]
    model = _read(queue / "device/model")
    if model:
        words.append(model)
    scheduler = re.search(r"\[(.*)\]", _read(queue / "queue/scheduler"))
    if scheduler:
        words.append(f"scheduler {scheduler[1]}")
    return ", ".join(words)


def machine(setting):
    """Name and value of what a reader needs to know to judge the figures."""
    processor = re.search(r"^model name\s*: (.*)$", _read("/proc/cpuinfo"), re.M)
    memory = int(re.search(r"MemTotal:\s*(\d+)", _read("/proc/meminfo"))[1])
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "processors": f"{os.cpu_count()} of {processor[1] if processor else platform.machine()}",
        "virtual machine": "yes" if " hypervisor" in _read("/proc/cpuinfo") else "no",
        "memory": f"{memory / MIB:.0f} GiB",
        "kernel": platform.release(),
        "file system": _filesystem(setting.folder),
        "disk": _disk(setting.folder),
        "pipe-max-size": _read("/proc/sys/fs/pipe-max-size"),
        "net.core.wmem_max": _read("/proc/sys/net/core/wmem_max"),
        "load before": _read("/proc/loadavg").split()[0],
        "vmspool": _version(setting.tool, "--version"),
        "libvirt": _version("libvirtd", "--version"),
        "QEMU": _version("qemu-system-x86_64", "--version"),
        "fio": _version("fio", "--version"),
        "mbuffer": _version("mbuffer", "--version"),
        "socat": _version("socat", "-V"),
        "coreutils": _version("dd", "--version"),
    }
    return {name: value for name, value in facts.items() if value}
