# guests: workloads with a real QEMU in which a guest has filled its memory with what can't be compressed
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import fcntl
import json
import os
import socket
import subprocess
import time

import vsptest
from rounds import Entry, RunError, Workload
from setting import STOCK

PIPE = 1 << 20
SOCKET = 2 << 20


def timed_process(command, **more):
    """Runs a program; its wall clock and processor time, its helper's included. Also what it printed."""
    started = time.monotonic()
    process = subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **more,
    )
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode != 0:
        raise RunError((printed.strip().splitlines() or [f"{command[0]} failed"])[-1])
    return {"seconds": seconds, "user": usage.ru_utime, "system": usage.ru_stime}, printed


def page_cache(path, state):
    """Brings a file out of the page cache, or into it."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(fd)
        if state == "cold":
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            for _ in range(2):
                os.lseek(fd, 0, os.SEEK_SET)
                while os.read(fd, 1 << 20):
                    pass
    finally:
        os.close(fd)


def settle(setting):
    """Nobody's earlier work is to be done on the next run's time."""
    subprocess.run(["sync", "--file-system", setting.folder], check=False)


def transport(kind):
    """(read end, write end)"""
    if kind == "pipe":
        read, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE)
        return read, write
    read, write = socket.socketpair()
    write.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET)
    return read.detach(), write.detach()


class Guests:
    """A guest to be saved over and over, images of it, and QEMUs that wait for one."""

    def __init__(self, setting):
        self.setting = setting
        self.guest = None
        self.target = setting.folder / "target"
        self.stream = setting.folder / "qemu-stream"
        self.image = setting.folder / "qemu-image"
        self.said = {}  # by the guest, until the moment of an image
        self.environment = {**os.environ, "VMSPOOL_IOHELPER": str(setting.helper)}

    def start(self):
        if not self.guest:
            self.guest = vsptest.Guest(self.setting.folder, memory=self.setting.memory, share=0)
            self.guest.start()
            self.guest.console.wait_passes(1)

    def stop(self):
        if self.guest:
            self.guest.stop()
            self.guest = None

    def _pause(self):
        """QEMU saves a guest only once without letting it run in between."""
        self.start()
        qmp = self.guest.qmp
        if self.guest.status() != "running":
            qmp("cont")
        qmp("stop")
        qmp("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
        qmp("migrate-set-parameters", max_bandwidth=1 << 50)
        qmp.events.clear()

    # Saving

    def _fresh(self, path):
        if path.exists():
            path.unlink()
        settle(self.setting)

    def save_by(self, helper, path, direct=False, kind="pipe"):
        """Through a helper as libvirtd does it; with None QEMU writes the file itself."""
        self._pause()
        self._fresh(path)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_DIRECT if direct else 0)
        file = os.open(path, flags, 0o600)
        sample = {}
        started = time.monotonic()
        if helper:
            read, write = transport(kind)
            process = subprocess.Popen([helper, path, "1"], stdin=read, stdout=file)
            os.close(read)
        else:
            write = os.dup(file)
        self.guest.qmp.getfd("bench", write)
        os.close(write)
        self.guest.qmp("migrate", uri="fd:bench")
        self.guest.qmp.wait_migration()
        if helper:
            self._ended(process, sample)
        os.fdatasync(file)
        sample["seconds"] = time.monotonic() - started
        sample["bytes"] = os.fstat(file).st_size
        os.close(file)
        return sample

    def save_by_exec(self, path):
        self._pause()
        self._fresh(path)
        started = time.monotonic()
        self.guest.qmp("migrate", uri=f"exec:exec cat >{path}")
        self.guest.qmp.wait_migration()
        with open(path, "rb") as file:
            os.fdatasync(file)
            return {"seconds": time.monotonic() - started, "bytes": os.fstat(file.fileno()).st_size}

    def save_by_tool(self, path, *options):
        """All that a user waits for, from the command's start to its end."""
        self._pause()
        self._fresh(path)
        sample, printed = timed_process(
            [
                *(self.setting.tool, "save", "--json", "--keep-paused", *options),
                *("--qmp", self.guest.path, path),
            ],
            env=self.environment,
        )
        told = vsptest.last_json(printed)
        sample.update(bytes=told["payload-bytes"], pause=told["pause-ns"] / 1e9)
        sample["statistics"] = told["transfer"]
        return sample

    @staticmethod
    def _ended(process, sample):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RunError("the helper failed")
        sample.update(user=usage.ru_utime, system=usage.ru_stime)

    # Restoring

    def _images(self):
        if self.said:
            return
        self.save_by(None, self.stream)
        self.said[self.stream] = self.guest.console.text()
        self.save_by_tool(self.image)
        self.said[self.image] = self.guest.console.text()

    def _waiting(self, path):
        """A QEMU that waits for an image; its guest will go on in the middle of a word if need be."""
        twin = self.guest.twin()
        twin.console.path.write_text(self.said[path])
        twin.start("-S", "-incoming", "defer")
        twin.qmp("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
        return twin

    @staticmethod
    def _proof(twin, verify):
        """The restored guest says itself that its memory is what it was."""
        if verify:
            twin.qmp("cont")
            twin.console.wait_progress()
        twin.stop()

    def restore_by(self, helper, state, verify, direct=False, kind="pipe"):
        self._images()
        twin = self._waiting(self.stream)
        try:
            page_cache(self.stream, state)
            file = os.open(self.stream, os.O_RDONLY | (os.O_DIRECT if direct else 0))
            sample = {"bytes": os.fstat(file).st_size}
            started = time.monotonic()
            if helper:
                read, write = transport(kind)
                process = subprocess.Popen([helper, self.stream, "0"], stdin=file, stdout=write)
                os.close(write)
            else:
                read = os.dup(file)
            os.close(file)
            twin.qmp.getfd("bench", read)
            os.close(read)
            twin.qmp("migrate-incoming", uri="fd:bench")
            twin.qmp.wait_migration()
            sample["seconds"] = time.monotonic() - started
            if helper:
                self._ended(process, sample)
            self._proof(twin, verify)
            return sample
        finally:
            twin.stop()

    def restore_by_tool(self, state, verify, *options):
        self._images()
        twin = self._waiting(self.image)
        try:
            page_cache(self.image, state)
            sample, printed = timed_process(
                [
                    *(self.setting.tool, "restore", "--json", "--paused", *options),
                    *("--qmp", twin.path, self.image),
                ],
                env=self.environment,
            )
            told = vsptest.last_json(printed)
            sample.update(bytes=told["payload-bytes"], statistics=told["transfer"])
            self._proof(twin, verify)
            return sample
        finally:
            twin.stop()

    # The workloads

    def _entry(self, name, title, function, *words, verify=False, **more):
        def run(checking):
            if verify:
                more["verify"] = checking
            try:
                return function(*words, **more)
            except (vsptest.QmpError, vsptest.Failure, OSError, json.JSONDecodeError) as error:
                raise RunError(str(error)) from error

        return Entry(name, title, run)

    def _helpers(self):
        found = [("drop-in", "vmspool_iohelper in its place", self.setting.helper)]
        if self.setting.have(STOCK, "libvirt-daemon"):
            found.insert(0, ("stock", "libvirt_iohelper", STOCK))
        return found

    def save(self, name, title, direct):
        path = self.target
        entries = [
            self._entry(one, text, self.save_by, helper, path, direct)
            for one, text, helper in self._helpers()
        ]
        if direct:
            entries.append(
                self._entry(
                    *("socket", "vmspool_iohelper, socket pair of 2 MiB", self.save_by),
                    *(self.setting.helper, path, True, "socket"),
                )
            )
        options = ["--bypass-cache"] if direct else []
        entries += [
            self._entry("vmspool", "vmspool save", self.save_by_tool, path, *options),
            self._entry("qemu-fd", "QEMU, plain file by fd:", self.save_by, None, path),
            self._entry("qemu-exec", "QEMU, exec:cat", self.save_by_exec, path),
        ]
        return Workload(name, title, entries, time=True, close=lambda: self._fresh(path))

    def restore(self, name, title, state, direct):
        entries = [
            self._entry(one, text, self.restore_by, helper, state, verify=True, direct=direct)
            for one, text, helper in self._helpers()
        ]
        options = ["--bypass-cache"] if direct else []

        def by_tool(verify):
            return self.restore_by_tool(state, verify, *options)

        entries += [
            self._entry("vmspool", "vmspool restore", by_tool, verify=True),
            self._entry("qemu-fd", "QEMU, plain file by fd:", self.restore_by, None, state, verify=True),
        ]
        return Workload(name, title, entries, time=True)

    def close(self):
        self.stop()
        for path in (self.target, self.stream, self.image):
            if path.exists():
                path.unlink()
