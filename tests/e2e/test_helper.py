# test_helper: vmspool_iohelper as libvirtd runs it, over lengths, engines, cache modes and storage
#
# To write: the data on stdin, the file as descriptor 1. To read: the file as descriptor 0, the data
# on stdout. Errors as text on stderr, exit 0 or 1.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import os
import pathlib
import random
import socket
import subprocess
import tempfile

import pytest

import vsptest
from vsptest import MIB

LENGTHS = [0, 1, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, MIB - 1, MIB, MIB + 1, 64 * MIB + 7]
# Where the longest adds nothing but time.
SHORTER = LENGTHS[:-1] + [9 * MIB + 7]
DATA = memoryview(random.Random(1).randbytes(LENGTHS[-1]))
# What a device holds before: it must be there still where the data has ended.
OLD = b"\xaa"
DEVICE = 80 * MIB

ENGINES = ["uring", "threads", "sync"]
CACHES = ["direct", "dontcache", "paced", "cached"]
TARGETS = ["ext4", "xfs", "tmpfs", "ext4-4k", "device-4k"]


@pytest.fixture(scope="module")
def targets():
    """Makes each kind of storage once: name -> path of a file (to be) or a device."""
    if not vsptest.may_mount():
        pytest.skip("needs root, for mounts and loop devices")
    folder = tempfile.mkdtemp(prefix="vsptest.", dir="/var/tmp")
    storage = vsptest.Storage(folder)
    made = {}

    def get(name):
        if name not in made:
            made[name] = {
                "ext4": lambda: storage.filesystem("ext4", 256 * MIB) / "file",
                "xfs": lambda: storage.filesystem("xfs", 512 * MIB) / "file",
                "tmpfs": lambda: storage.tmpfs("128M") / "file",
                "ext4-4k": lambda: storage.filesystem("ext4", 256 * MIB, sector=4096) / "file",
                "device-4k": lambda: storage.loop(DEVICE, sector=4096),
            }[name]()
        return made[name]

    yield get
    storage.close()
    vsptest.remove_tree(folder)


def ends(transport):
    """(what the helper gets, what we keep): a one-way channel; the second writes."""
    if transport == "socket":
        one, two = socket.socketpair()
        return one.detach(), two.detach()
    return os.pipe()


@contextlib.contextmanager
def start(stdin, stdout, *options, fd):
    """Starts the helper; yields what waits for its end, checks the status, and returns stderr."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [vsptest.HELPER, *options, "NAME", str(fd)], stdin=stdin, stdout=stdout, stderr=errors
        )

        def end(status=0):
            process.wait(vsptest.LIMIT)
            errors.seek(0)
            text = errors.read()
            assert process.returncode == status, text
            return text

        yield end


def save(path, data, *options, offset=0, transport="pipe", status=0, chunk=MIB, flags=0):
    with contextlib.ExitStack() as stack:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
        stack.callback(os.close, file)
        os.lseek(file, offset, os.SEEK_SET)
        source, sink = ends(transport)
        reader = stack.enter_context(open(source, "rb", buffering=0))
        writer = stack.enter_context(open(sink, "wb", buffering=0))
        end = stack.enter_context(start(source, file, *options, fd=1))
        # The only reader is the helper: when it ends early, we have to see a broken pipe.
        reader.close()
        done = 0
        with contextlib.suppress(BrokenPipeError):
            while done < len(data):
                done += writer.write(data[done : done + chunk])
        writer.close()
        return end(status)


def restore(path, *options, offset=0, transport="pipe", status=0, flags=0):
    with contextlib.ExitStack() as stack:
        file = os.open(path, os.O_RDONLY | flags)
        stack.callback(os.close, file)
        os.lseek(file, offset, os.SEEK_SET)
        source, sink = ends(transport)
        reader = stack.enter_context(open(source, "rb", buffering=0))
        writer = stack.enter_context(open(sink, "wb", buffering=0))
        end = stack.enter_context(start(file, sink, *options, fd=0))
        writer.close()
        found = bytearray()
        while True:
            piece = reader.read(MIB)
            if not piece:
                break
            found += piece
        end(status)
        return found


def is_device(path):
    return pathlib.Path(path).is_block_device()


def prepare(path, length):
    """An empty file, or a device that is full of something else."""
    if is_device(path):
        with open(path, "r+b") as device:
            device.write(OLD * min(length + MIB, DEVICE))
    else:
        path.unlink(missing_ok=True)


def check_saved(path, offset, data):
    with open(path, "rb") as file:
        file.seek(offset)
        assert file.read(len(data)) == data
        rest = file.read(MIB)
    if is_device(path):
        assert rest == OLD * len(rest)
    else:
        assert rest == b""


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", TARGETS)
def test_save(targets, target, engine, cache):
    path = targets(target)
    for length in LENGTHS if cache in ["direct", "cached"] else SHORTER:
        prepare(path, length)
        save(path, DATA[:length], f"--engine={engine}", f"--cache={cache}")
        check_saved(path, 0, DATA[:length])


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", TARGETS)
def test_restore(targets, target, engine, cache):
    path = targets(target)
    for length in LENGTHS if cache in ["direct", "cached"] else SHORTER:
        prepare(path, length)
        with open(path, "r+b" if is_device(path) else "wb") as file:
            file.write(DATA[:length])
        # A device does not end where the data does.
        more = [f"--length={length}"] if is_device(path) else []
        found = restore(path, f"--engine={engine}", f"--cache={cache}", *more)
        assert found == DATA[:length]


@pytest.mark.parametrize("offset", [92, 67000])
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("engine", ENGINES)
def test_offset(targets, engine, cache, offset):
    """libvirtd starts the helper behind the header of an image, at any odd offset."""
    path = targets("ext4-4k")
    for length in [0, 1, 4096, 65537, 5 * MIB + 3]:
        prepare(path, length)
        path.write_bytes(OLD * offset)
        save(path, DATA[:length], f"--engine={engine}", f"--cache={cache}", offset=offset)
        check_saved(path, offset, DATA[:length])
        assert path.read_bytes()[:offset] == OLD * offset
        found = restore(path, f"--engine={engine}", f"--cache={cache}", offset=offset)
        assert found == DATA[:length]


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("engine", ENGINES)
def test_socket(targets, engine, cache):
    path = targets("ext4")
    for length in SHORTER:
        prepare(path, length)
        save(path, DATA[:length], f"--engine={engine}", f"--cache={cache}", transport="socket")
        check_saved(path, 0, DATA[:length])
        assert restore(path, f"--engine={engine}", f"--cache={cache}", transport="socket") == DATA[:length]


@pytest.mark.parametrize("engine", ENGINES)
def test_small_writes(targets, engine):
    """QEMU's own writes are small and odd."""
    path = targets("ext4")
    prepare(path, 0)
    save(path, DATA[: 5 * MIB], f"--engine={engine}", "--cache=direct", chunk=4097)
    check_saved(path, 0, DATA[: 5 * MIB])


@pytest.mark.parametrize("engine", [[], *([f"--engine={engine}"] for engine in ENGINES)])
def test_direct_flag_of_the_caller(targets, engine):
    """libvirtd opens the file with O_DIRECT itself, for --bypass-cache."""
    path = targets("ext4-4k")
    for length in LENGTHS:
        prepare(path, length)
        save(path, DATA[:length], *engine, flags=os.O_DIRECT)
        check_saved(path, 0, DATA[:length])
        assert restore(path, *engine, flags=os.O_DIRECT) == DATA[:length]


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("engine", ENGINES)
def test_disk_full(storage, engine, cache):
    path = storage.tmpfs("16M") / "file"
    text = save(path, DATA[: 32 * MIB], f"--engine={engine}", f"--cache={cache}", status=1)
    assert "No space left on device" in text
    assert "NAME" in text


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("engine", ENGINES)
def test_disk_full_on_a_disk(storage, engine, cache):
    path = storage.filesystem("ext4", 16 * MIB) / "file"
    text = save(path, DATA[: 32 * MIB], f"--engine={engine}", f"--cache={cache}", status=1)
    assert "No space left on device" in text


@pytest.mark.parametrize("engine", ENGINES)
def test_reader_gone(folder, engine):
    path = folder / "file"
    path.write_bytes(DATA[: 32 * MIB])
    source, sink = os.pipe()
    with open(path, "rb") as file, start(file, sink, f"--engine={engine}", fd=0) as end:
        os.close(sink)
        os.read(source, 65536)
        os.close(source)
        assert "the reader" in end(status=1)


def test_full_device():
    with open("/dev/full", "wb") as full:
        source, sink = os.pipe()
        with start(source, full, fd=1) as end:
            os.close(source)
            with open(sink, "wb", buffering=0) as writer, contextlib.suppress(BrokenPipeError):
                writer.write(DATA[:MIB])
            assert "No space left on device" in end(status=1)


def test_wrong_arguments():
    for words in [[], ["NAME"], ["NAME", "x"], ["NAME", "1", "2"], ["NAME", "-1"], ["--engine=none", "NAME", "1"]]:
        failed = vsptest.run(vsptest.HELPER, *words, status=1)
        assert failed.stderr
        assert failed.stdout == ""


def test_read_and_write_is_refused(folder):
    with open(folder / "file", "w+b") as file, start(subprocess.DEVNULL, file, fd=1) as end:
        assert "both" in end(status=1)
