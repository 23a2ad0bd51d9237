# vsptest: the tools of the end-to-end tests
#
# A guest that proves its memory, its monitor, the programs under test, file systems on loop devices,
# and what may be left behind. Every wait has a limit, and waits for a condition.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

BUILD = pathlib.Path(os.environ.get("VSPTEST_BUILD", "build")).resolve()
TOOL = BUILD / "tools/vmspool"
HELPER = BUILD / "src/iohelper/vmspool_iohelper"
GUEST = BUILD / "tests/guest"
QEMU = os.environ.get("VSPTEST_QEMU", "qemu-system-x86_64")

# In namespaces of our own, where all processes but the first are ours.
ISOLATED = os.environ.get("VSPTEST_ISOLATED") == "1"

# Generous, because a machine under load is no error. What hangs is found all the same.
LIMIT = float(os.environ.get("VSPTEST_LIMIT", "90"))

MIB = 1 << 20


class Failure(AssertionError):
    """What was waited for did not come."""


def wait_for(condition, what, limit=LIMIT, period=0.005):
    """Calls condition() until it returns something true, and returns that."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {limit:g} s")
        time.sleep(period)


# Processes

# Those that outlive a test, such as a daemon that a whole file of tests shares.
KNOWN = set()


def processes():
    """pid -> (parent, state, name, command line) of all that can be seen."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = pathlib.Path("/proc", entry, "stat").read_text()
            line = pathlib.Path("/proc", entry, "cmdline").read_bytes()
        except OSError:
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        fields = rest.split()
        command = line.replace(b"\0", b" ").decode(errors="replace").strip()
        found[int(entry)] = (int(fields[1]), fields[0], name, command)
    return found


def descendants(root=None):
    """Those of processes() that come from root, us by default."""
    table = processes()
    family = {root or os.getpid()}
    while True:
        more = {pid for pid, entry in table.items() if entry[0] in family} - family
        if not more:
            break
        family |= more
    return {pid: table[pid] for pid in family - {root or os.getpid()} if pid in table}


def alive(pid):
    entry = processes().get(pid)
    return entry is not None and entry[1] != "Z"


def leftovers():
    """What still runs of all that was started, other than the KNOWN ones."""
    init = 1
    if ISOLATED:
        table = processes()
        table = {pid: entry for pid, entry in table.items() if pid not in (init, os.getpid())}
    else:
        table = descendants()
    return {
        pid: command or name
        for pid, (_, state, name, command) in table.items()
        if pid not in KNOWN and state != "Z"
    }


def find_descendant(root, name):
    """The pid of a descendant of root with that program name, or None."""
    for pid, entry in descendants(root).items():
        if entry[2] == name[:15] and entry[1] != "Z":
            return pid
    return None


def helper_of(process):
    """Waits for the iohelper below a process."""
    return wait_for(
        lambda: find_descendant(process.pid, "vmspool_iohelper"), "an iohelper to start", period=0.001
    )


def kill_all():
    for pid in leftovers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not leftovers(), "killed processes to go")


# QEMU


def kvm_works():
    kvm_create_vm = 0xAE01
    try:
        with open("/dev/kvm", "r+b", buffering=0) as kvm:
            os.close(fcntl.ioctl(kvm, kvm_create_vm))
    except OSError:
        return False
    return True


ACCELERATOR = os.environ.get("VSPTEST_ACCEL") or ("kvm" if kvm_works() else "tcg")


class QmpError(Exception):
    pass


class Qmp:
    """A monitor connection."""

    def __init__(self, path, limit=LIMIT):
        self.events = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(limit)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.lines = self.socket.makefile("rb")
        self._read()
        self("qmp_capabilities")

    def _read(self):
        line = self.lines.readline()
        if not line:
            raise ConnectionError("QEMU closed the monitor")
        return json.loads(line)

    def __call__(self, command, **arguments):
        message = {"execute": command}
        if arguments:
            message["arguments"] = {k.replace("_", "-"): v for k, v in arguments.items()}
        self.socket.sendall(json.dumps(message).encode() + b"\n")
        return self._reply()

    def _reply(self):
        while True:
            reply = self._read()
            if "return" in reply:
                return reply["return"]
            if "error" in reply:
                raise QmpError(reply["error"]["desc"])
            self.events.append(reply)

    def getfd(self, name, fd):
        """Gives QEMU a descriptor of ours, under a name."""
        message = {"execute": "getfd", "arguments": {"fdname": name}}
        socket.send_fds(self.socket, [json.dumps(message).encode() + b"\n"], [fd])
        return self._reply()

    def wait_migration(self):
        """Waits for a migration to end, by its events; fails unless it ended well."""
        while True:
            for event in self.events:
                status = event["data"]["status"] if event["event"] == "MIGRATION" else None
                if status in ("completed", "failed", "cancelled"):
                    self.events.clear()
                    if status != "completed":
                        raise QmpError(f"the migration {status}")
                    return
            self.events.clear()
            self.events.append(self._read())

    def close(self):
        self.lines.close()
        self.socket.close()


class Console:
    """What the guest said, over all lives of the VM: restored QEMUs append to the same file."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def text(self):
        try:
            return self.path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def check(self):
        """Fails unless this is one unbroken story; returns the last pass and the seed."""
        text = self.text()
        lines = text.split("\n")
        whole, cut = lines[:-1], lines[-1]
        if not whole:
            return 0, None
        boot = re.fullmatch(r"boot ([0-9a-f]{8}) ([0-9a-f]{8})", whole[0])
        if not boot:
            raise Failure(f"the guest's first line is {whole[0]!r}")
        for number, line in enumerate(whole[1:], start=1):
            if line != f"pass {number} ok {boot[1]}":
                raise Failure(f"the guest said {line!r} in place of pass {number}, seed {boot[1]}")
        if not f"pass {len(whole)} ok {boot[1]}".startswith(cut):
            raise Failure(f"the guest began to say {cut!r} in place of pass {len(whole)}")
        return len(whole) - 1, boot[1]

    def passes(self):
        return self.check()[0]

    def seed(self):
        return int(self.check()[1], 16)

    def end(self):
        return int(self.text().split("\n")[0].split()[2], 16)

    def wait_passes(self, count, limit=LIMIT):
        wait_for(lambda: self.passes() >= count, f"pass {count} of the guest", limit)

    def wait_progress(self, limit=LIMIT):
        """Two whole passes from now: all of the memory as it is now was read."""
        self.wait_passes(self.passes() + 2, limit)


class Guest:
    """A VM with the test guest in it. Its monitor `path` is for the program under test, `qmp` is ours."""

    def __init__(self, folder, name="guest", memory=128, share=64, shift=16, disk=False, extra=()):
        self.folder = pathlib.Path(folder)
        self.name = name
        self.memory = memory
        self.share = share
        self.shift = shift
        self.disk = disk
        self.extra = list(extra)
        self.process = None
        self.qmp = None
        self.life = 0
        self.boot = self.folder / f"{name}.{'img' if disk else 'rom'}"
        self.console = Console(self.folder / f"{name}.console")
        make_boot(self.boot, disk=disk, share=share, shift=shift)
        self.folder.joinpath(f"{name}.log").touch()

    @property
    def path(self):
        return self.folder / f"{self.name}.{self.life}.qmp"

    @property
    def own_path(self):
        return self.folder / f"{self.name}.{self.life}.own"

    def command(self, *more, monitor=True):
        """The command line of the VM's current life."""
        boot = ["-drive", f"file={self.boot},format=raw,if=ide"] if self.disk else ["-bios", self.boot]
        line = [
            QEMU,
            *("-name", self.name),
            *("-accel", ACCELERATOR, "-m", str(self.memory), "-nodefaults", "-display", "none"),
            *("-chardev", f"file,id=console,path={self.console.path},append=on"),
            *("-device", "isa-debugcon,iobase=0xe9,chardev=console"),
            *("-qmp", f"unix:{self.own_path},server=on,wait=off"),
            *boot,
            *self.extra,
            *more,
        ]
        if monitor:
            line += ["-qmp", f"unix:{self.path},server=on,wait=off"]
        return [str(word) for word in line]

    def start(self, *more, environment=None):
        with open(self.folder / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(*more),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
            )
        self.attach()
        return self

    def attach(self):
        """Connects our monitor to a QEMU that is up or will be."""
        self.qmp = wait_for(self._connect, "QEMU's monitor")
        return self

    def _connect(self):
        if self.process and self.process.poll() is not None:
            raise Failure(f"QEMU ended with {self.process.returncode}: {self.log()}")
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return Qmp(self.own_path)
        return None

    def log(self):
        return (self.folder / f"{self.name}.log").read_text(errors="replace").strip()

    def next_life(self):
        """The VM was saved and its QEMU has ended; the next command() is for another one."""
        self.gone()
        self.life += 1
        return self

    def twin(self):
        """Another VM, as far as it comes, from where this one stands: for one image, restored twice."""
        twin = Guest(self.folder, f"{self.name}-twin", self.memory, self.share, self.shift, self.disk)
        twin.boot.write_bytes(self.boot.read_bytes())
        twin.console.path.write_bytes(self.console.path.read_bytes())
        return twin

    def gone(self, limit=LIMIT):
        """Waits for QEMU to have ended."""
        if self.qmp:
            self.qmp.close()
            self.qmp = None
        if self.process:
            self.process.wait(limit)
            self.process = None

    def status(self):
        return self.qmp("query-status")["status"]

    def runs(self, limit=LIMIT):
        """Fails unless the VM runs and its memory is what it was."""
        assert self.status() == "running"
        self.console.wait_progress(limit)

    def stands(self):
        """Fails unless the VM is paused, and its memory what it was: it is let run to see."""
        assert self.status() == "paused"
        self.qmp("cont")
        self.runs()

    def stop(self):
        if self.qmp:
            with contextlib.suppress(OSError, ConnectionError):
                self.qmp("quit")
        self.gone()


class Slow:
    """Makes a QEMU slow in the middle of a save or a restore; see slowio.c."""

    def __init__(self, folder, after=24 * MIB):
        self.mark = pathlib.Path(folder) / "slow.mark"
        self.environment = {
            "LD_PRELOAD": str(BUILD / "tests/e2e/libslowio.so"),
            "VSPTEST_SLOW_AFTER": str(after),
            "VSPTEST_SLOW_MARK": str(self.mark),
        }

    def words(self):
        """To go before a QEMU command that another program starts."""
        return ["env", *(f"{name}={value}" for name, value in self.environment.items())]

    def wait_middle(self):
        wait_for(self.mark.exists, "the middle of the transfer")

    def over(self):
        """Back to full speed."""
        self.mark.unlink()


def make_boot(path, disk=False, share=64, shift=16, limit=0, seed=0):
    """A copy of the guest with its parameters patched; see tests/guest/boot.S."""
    image = bytearray((GUEST / ("boot.img" if disk else "boot.rom")).read_bytes())
    assert image[4:8] == b"VSPG"
    image[8:16] = struct.pack("<BBHI", share, shift, limit, seed)
    pathlib.Path(path).write_bytes(image)


def verify_memory(path, offset, address, length, seed, share, shift):
    """Compares part of a file with what the guest has at a physical address."""
    run(GUEST / "guest-verify", path, offset, address, length, f"0x{seed:x}", share, shift)


def core_segments(path):
    """The loadable segments of an ELF core: (physical address, offset in the file, bytes)."""
    with open(path, "rb") as core:
        header = core.read(64)
        assert header[:6] == b"\x7fELF\x02\x01", "not a 64-bit little-endian ELF file"
        assert struct.unpack_from("<H", header, 16)[0] == 4, "not a core"
        table, size, count = (
            struct.unpack_from("<Q", header, 32)[0],
            *struct.unpack_from("<HH", header, 54),
        )
        segments = []
        for number in range(count):
            core.seek(table + number * size)
            entry = struct.unpack("<IIQQQQQQ", core.read(56))
            pt_load = 1
            if entry[0] == pt_load:
                assert entry[5] == entry[6], "a segment that is shorter in the file than in memory"
                segments.append((entry[4], entry[2], entry[5]))
    return sorted(segments)


def verify_core(path, guest):
    """Fails unless all of the guest's pattern is in the core, each page where it belongs."""
    run("readelf", "--program-headers", path)
    at, end = MIB, guest.console.end()
    for address, offset, size in core_segments(path):
        if address <= at < address + size:
            length = min(end, address + size) - at
            verify_memory(
                path, offset + at - address, at, length, guest.console.seed(), guest.share, guest.shift
            )
            at += length
    if at < end:
        raise Failure(f"the core has nothing for the physical address {at:#x}")


# Programs


def run(*command, limit=LIMIT, status=0, **more):
    """Runs a program to its end; fails unless it ends with that status (None: any)."""
    line = [str(word) for word in command]
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    more.setdefault("text", True)
    done = subprocess.run(line, timeout=limit, check=False, **more)
    if status is not None and done.returncode != status:
        raise Failure(
            f"{' '.join(line)}\nended with {done.returncode}, not {status}\n{done.stdout}\n{done.stderr}"
        )
    return done


def tool_environment(**more):
    environment = dict(os.environ)
    environment["LC_ALL"] = "C.UTF-8"
    environment["VMSPOOL_IOHELPER"] = str(HELPER)
    environment.update({key: str(value) for key, value in more.items()})
    return environment


def vmspool(*arguments, status=0, limit=LIMIT, **more):
    more.setdefault("env", tool_environment())
    return run(TOOL, *arguments, status=status, limit=limit, **more)


def vmspool_start(*arguments, **more):
    """Starts the tool and does not wait; see vmspool_end()."""
    more.setdefault("env", tool_environment())
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(
        [str(TOOL), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def vmspool_end(process, status=0, limit=LIMIT):
    out, err = process.communicate(timeout=limit)
    if status is not None and process.returncode != status:
        raise Failure(f"the tool ended with {process.returncode}, not {status}\n{out}\n{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def last_json(text):
    """The report: the last line that is a JSON object."""
    return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])


# File systems and devices


class Storage:
    """Loop devices and mounts below a folder, taken down in reverse order."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.count = 0
        self.undo = contextlib.ExitStack()

    def _name(self, kind):
        self.count += 1
        return self.folder / f"{kind}{self.count}"

    def tmpfs(self, size):
        path = self._name("tmpfs")
        path.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={size}", "vsptest", path)
        self.undo.callback(self._unmount, path)
        return path

    def loop(self, size, sector=512):
        """A block device. It is set to go with its last user, so none is ever left behind."""
        backing = self._name("disk")
        with open(backing, "wb") as file:
            file.truncate(size)
        device = run(
            *("losetup", "--find", "--show", "--sector-size", sector, backing)
        ).stdout.strip()
        holder = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        run("losetup", "--detach", device)
        self.undo.callback(backing.unlink)
        self.undo.callback(os.close, holder)
        return pathlib.Path(device)

    def filesystem(self, kind, size, sector=512):
        device = self.loop(size, sector)
        if kind == "ext4":
            run("mkfs.ext4", "-q", "-F", device)
        else:
            run("mkfs.xfs", "-q", "-f", device)
        path = self._name(kind)
        path.mkdir()
        run("mount", device, path)
        self.undo.callback(self._unmount, path)
        return path

    def _unmount(self, path):
        wait_for(
            lambda: run("umount", path, status=None).returncode == 0, f"{path} to be unused", period=0.1
        )
        path.rmdir()

    def close(self):
        self.undo.close()


def may_mount():
    return os.geteuid() == 0 and ISOLATED


def remove_tree(path):
    shutil.rmtree(path, ignore_errors=True)
