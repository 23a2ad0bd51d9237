# test_zerocopy: from the page cache into a stream without a copy, and as safe as with one
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import fcntl
import os
import pathlib
import subprocess
import termios
import struct

import pytest

import vsptest
from test_helper import DATA, DEVICE, LENGTHS, TARGETS, ends, is_device, prepare, restore, start, targets
from vsptest import MIB

FAULTY = pathlib.Path(str(vsptest.HELPER) + "_fault")


@pytest.mark.parametrize("transport", ["pipe", "socket"])
@pytest.mark.parametrize("target", TARGETS)
def test_restore(targets, target, transport):
    path = targets(target)
    for length in LENGTHS:
        prepare(path, length)
        with open(path, "r+b" if is_device(path) else "wb") as file:
            file.write(DATA[:length])
        more = [f"--length={length}"] if is_device(path) else []
        found = restore(path, "--engine=zerocopy", "--cache=cached", *more, transport=transport)
        assert found == DATA[:length]


@pytest.mark.parametrize("transport", ["pipe", "socket"])
def test_offset(targets, transport):
    path = targets("ext4")
    prepare(path, 0)
    path.write_bytes(DATA[: 9 * MIB])
    for offset in [1, 92, 4096, 67000, 9 * MIB, 10 * MIB]:
        found = restore(path, "--engine=zerocopy", "--cache=cached", offset=offset, transport=transport)
        assert found == DATA[offset : 9 * MIB]


def test_what_is_in_memory_is_chosen(folder):
    """Without a word it is the engine for a file that was just read."""
    path = folder / "file"
    path.write_bytes(DATA[: 8 * MIB])
    path.read_bytes()
    source, sink = os.pipe()
    with subprocess.Popen(["cat"], stdin=source, stdout=subprocess.DEVNULL) as reader:
        os.close(source)
        told = subprocess.run(
            [vsptest.TOOL, "copy", path, "-"], stdout=sink, stderr=subprocess.PIPE, text=True,
            timeout=vsptest.LIMIT, env=vsptest.tool_environment(),
        )
        os.close(sink)
        reader.wait(vsptest.LIMIT)
    assert told.returncode == 0
    assert "(zerocopy, cached)" in told.stderr


def unread(fd):
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]


def in_the_stream(process_of, source, length):
    """Waits until the helper has handed everything over and sleeps."""
    vsptest.wait_for(lambda: unread(source) == length, "the stream to be full")
    wchan = pathlib.Path(f"/proc/{process_of.pid}/wchan")
    vsptest.wait_for(lambda: "nanosleep" in wchan.read_text(), "the helper to wait for the reader")


def run_into(sink, path, helper=vsptest.HELPER, *options):
    with open(path, "rb") as file:
        process = subprocess.Popen(
            [helper, "--engine=zerocopy", "--cache=cached", *options, "NAME", "0"],
            stdin=file, stdout=sink, stderr=subprocess.PIPE,
        )
    os.close(sink)
    return process


@pytest.mark.parametrize("transport", ["pipe", "socket"])
def test_no_success_before_the_reader_has_it(folder, transport):
    path = folder / "file"
    length = 40000
    path.write_bytes(DATA[:length])
    source, sink = ends(transport)
    process = run_into(sink, path)
    in_the_stream(process, source, length)
    assert process.poll() is None
    found = b""
    while len(found) < length:
        found += os.read(source, length)
    assert found == DATA[:length]
    assert process.wait(vsptest.LIMIT) == 0
    process.stderr.close()
    os.close(source)


@pytest.mark.parametrize("transport", ["pipe", "socket"])
def test_reader_gone_with_bytes_left(folder, transport):
    path = folder / "file"
    length = 40000
    path.write_bytes(DATA[:length])
    source, sink = ends(transport)
    process = run_into(sink, path)
    in_the_stream(process, source, length)
    os.read(source, 100)
    os.close(source)
    assert process.wait(vsptest.LIMIT) == 1
    assert b"the reader of 'NAME' closed its end" in process.stderr.read()
    process.stderr.close()


@pytest.mark.parametrize("errno", ["EINVAL", "EOPNOTSUPP"])
@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("transport", ["pipe", "socket"])
def test_refused_in_mid_stream(folder, transport, call, errno):
    """Another engine goes on from where the stream stands: nothing is lost, nothing comes twice."""
    path = folder / "file"
    path.write_bytes(DATA[: 20 * MIB + 5])
    source, sink = ends(transport)
    process = run_into(sink, path, FAULTY, f"--fault-file=read@{call}={errno}")
    with open(source, "rb") as reader:
        assert reader.read() == DATA[: 20 * MIB + 5]
    assert process.wait(vsptest.LIMIT) == 0
    process.stderr.close()
