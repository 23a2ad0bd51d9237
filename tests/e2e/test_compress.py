# test_compress: compressed images: what others read and write, what is damaged, and VMs out of them
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import random
import shutil
import struct
import subprocess

import pytest

import vsptest
from test_digest import flip, xxh128
from vsptest import MIB, run, vmspool

FORMATS = ["gzip", "bzip2", "xz", "lzop", "zstd"]
NUMBERS = {name: number for number, name in enumerate(FORMATS, start=1)}
LEVELS = ["gzip:1", "gzip:9", "bzip2:1", "xz:0", "xz:6", "lzop:1", "lzop:9", "zstd:1", "zstd:12"]

DATA = b"".join(b"%d\n" % number for number in range(200000)) + random.Random(4).randbytes(MIB + 7)


@pytest.fixture(params=FORMATS)
def fmt(request):
    if not shutil.which(request.param):
        pytest.skip(f"needs {request.param}")
    return request.param


def copy(*words, status=0):
    done = vmspool("copy", "--json", "--force", *words, status=status)
    return vsptest.last_json(done.stdout)


def stock(fmt, *options, data):
    return subprocess.run([fmt, *options, "-c"], input=data, capture_output=True, check=True, timeout=60).stdout


def compressed(fmt, folder):
    (folder / "in").write_bytes(DATA)
    copy(f"--compress={fmt}", folder / "in", folder / "packed")
    return (folder / "packed").read_bytes()


@pytest.mark.parametrize("spec", FORMATS + LEVELS)
def test_round_trip(folder, spec):
    fmt = spec.partition(":")[0]
    if not shutil.which(fmt):
        pytest.skip(f"needs {fmt}")
    source, packed, back = folder / "in", folder / "packed", folder / "back"
    for length in [1, 65537, len(DATA)]:
        source.write_bytes(DATA[-length:])
        report = copy("--digest", f"--compress={spec}", source, packed)
        stored = packed.read_bytes()
        assert stock(fmt, "-d", data=stored) == DATA[-length:]
        assert report["compression"].partition(":")[0] == fmt
        assert report["digest"] == xxh128(stored)
        assert report["bytes-in"] == report["raw-bytes"] == length
        assert report["bytes-out"] == report["payload-bytes"] == len(stored)
        # Into a file, and into a stream.
        report = copy("--digest", f"--decompress={fmt}", packed, back)
        assert back.read_bytes() == DATA[-length:]
        assert (report["bytes-in"], report["bytes-out"]) == (len(stored), length)
        assert report["digest"] == xxh128(DATA[-length:])
        report = copy("--digest", f"--decompress={fmt}", packed, "/dev/null")
        assert (report["bytes-in"], report["bytes-out"]) == (len(stored), length)
        assert report["digest"] == xxh128(stored)


def test_of_others(folder, fmt):
    """What the format's own program writes, from a file and into a pipe."""
    (folder / "packed").write_bytes(stock(fmt, data=DATA))
    copy(f"--decompress={fmt}", folder / "packed", folder / "back")
    assert (folder / "back").read_bytes() == DATA
    out = vmspool("copy", f"--decompress={fmt}", folder / "packed", "-", text=False).stdout
    assert out == DATA


def test_levels_that_are_none(folder, fmt):
    (folder / "in").write_bytes(b"x")
    # xz has a level 0, zstd one of 10.
    beyond = {"xz": ["10"], "zstd": ["0"]}.get(fmt, ["0", "10"])
    for level in ["-1", "23", "", "3x", *beyond]:
        told = vmspool("copy", f"--compress={fmt}:{level}", folder / "in", folder / "out", status=2)
        assert "has the levels" in told.stderr
        assert not (folder / "out").exists()


def failure(packed, fmt):
    report = copy(f"--decompress={fmt}", packed, "/dev/null", status=3)
    return report["error"]["code"], report["error"]["message"]


def test_cut(folder, fmt):
    whole = compressed(fmt, folder)
    packed = folder / "packed"
    rng = random.Random(6)
    for at in [0, 1, 5, 20, 40, len(whole) // 2, len(whole) - 9, len(whole) - 1] + [
        rng.randrange(len(whole)) for _ in range(6)
    ]:
        packed.write_bytes(whole[:at])
        code, message = failure(packed, fmt)
        # A gzip header that is cut is just a wrong one to the decompressor.
        if not (fmt == "gzip" and at < 64):
            assert code == "image-cut", (at, message)
            assert "unexpected end of compressed data" in message
        assert str(packed) in message


def test_something_behind(folder, fmt):
    whole = compressed(fmt, folder)
    packed = folder / "packed"
    for garbage in [b"x", b"hello world" * 1000]:
        packed.write_bytes(whole + garbage)
        code, _ = failure(packed, fmt)
        assert code in ("image-corrupt", "image-cut"), garbage


def test_flipped(folder, fmt):
    """By the checksums of the format; those of zstd are optional, and `zstd -c` writes them."""
    whole = stock(fmt, data=DATA)
    packed = folder / "packed"
    rng = random.Random(8)
    for at in [len(whole) // 2] + [rng.randrange(64, len(whole)) for _ in range(6)]:
        packed.write_bytes(whole)
        flip(packed, at)
        code, message = failure(packed, fmt)
        assert code in ("image-corrupt", "image-cut"), (at, message)


def test_something_else(folder, fmt):
    packed = folder / "packed"
    for data in [b"QEVM" + bytes(1000), bytes(1000), b"x"]:
        packed.write_bytes(data)
        code, message = failure(packed, fmt)
        assert code == "image-corrupt"
        assert "does not begin as compressed data does" in message


# VMs. Small ones, and the quickest level of xz: bzip2 and xz are slow.

MEMORY = 32
QUICK = {"xz": "xz:0"}


def info(path):
    return vsptest.last_json(vmspool("info", "--json", path).stdout)


@pytest.mark.parametrize("bypass", [[], ["--bypass-cache"]], ids=["auto", "direct"])
def test_save_and_restore(guest, folder, fmt, bypass):
    one = guest(memory=MEMORY, share=32)
    path = folder / "image"
    report = vsptest.last_json(
        vmspool("save", "--json", f"--compress={QUICK.get(fmt, fmt)}", *bypass, "--qmp", one.path, path).stdout
    )
    found = info(path)
    stored = path.read_bytes()[found["payload-offset"] :]
    assert (found["format"], found["seal"]) == (fmt, "valid")
    assert found["payload-size"] == len(stored) == report["payload-bytes"]
    assert found["payload-digest"] == xxh128(stored)
    state = stock(fmt, "-d", data=stored)
    assert state.startswith(b"QEVM")
    assert len(state) == report["transfer"]["raw-bytes"] > len(stored)

    one.next_life()
    vmspool("restore", *bypass, path, "--", *one.command())
    one.attach()
    one.runs()


def test_one_bit_anywhere(guest, folder, fmt):
    one = guest(memory=MEMORY, share=32)
    path = folder / "image"
    vmspool("save", f"--compress={QUICK.get(fmt, fmt)}", "--qmp", one.path, path)
    one.next_life()
    found = info(path)
    first, size = found["payload-offset"], found["payload-size"]
    console = one.console.text()
    for at in [first + size // 2, first + size - 1]:
        flip(path, at)
        failed = vmspool("restore", "--json", path, "--", *one.command(), status=3)
        error = vsptest.last_json(failed.stdout)["error"]
        assert error["code"] in ("image-corrupt", "image-cut"), error
        assert str(path) in error["message"]
        assert one.console.text() == console
        flip(path, at)


def test_cut_image_without_a_seal(guest, folder, fmt):
    """As libvirt writes them: only the compressed data tells."""
    one = guest(memory=MEMORY, share=32)
    path = folder / "image"
    vmspool("save", f"--compress={QUICK.get(fmt, fmt)}", "--qmp", one.path, path)
    one.next_life()
    data = bytearray(path.read_bytes())
    data[0x34:0x5C] = bytes(40)
    path.write_bytes(data[:-5])
    failed = vmspool("restore", "--json", path, "--", *one.command(), status=3)
    assert vsptest.last_json(failed.stdout)["error"]["code"] == "image-cut"
    path.write_bytes(data)
    vmspool("restore", path, "--", *one.command())
    one.attach()
    one.runs()


def test_a_format_that_is_none_of_it(guest, folder):
    """A header that lies about its format."""
    one = guest(memory=MEMORY, share=32)
    path = folder / "image"
    vmspool("save", "--qmp", one.path, path)
    one.next_life()
    with open(path, "r+b") as file:
        file.seek(0x1C)
        file.write(struct.pack("=I", NUMBERS["gzip"]))
    failed = vmspool("restore", "--json", path, "--", *one.command(), status=3)
    error = vsptest.last_json(failed.stdout)["error"]
    assert "does not begin as compressed data does" in error["message"]


def test_refused_before_the_pause(guest, folder):
    """What can't be had is told while the VM runs, and nothing is stored uncompressed instead."""
    one = guest(memory=MEMORY, share=32)
    path = folder / "image"
    for spec in ["lzma", "zstd:23", "gzip:x"]:
        vmspool("save", f"--compress={spec}", "--qmp", one.path, path, status=2)
    nothing = folder / "empty"
    nothing.mkdir()
    script = folder / "helper"
    # A helper that looks for lzop in an empty folder.
    script.write_text(f'#!/bin/sh\nPATH={nothing} exec {vsptest.HELPER} "$@"\n')
    script.chmod(0o755)
    failed = vmspool(
        *("save", "--compress=lzop", "--json", "--qmp", one.path, path),
        status=None, env=vsptest.tool_environment(VMSPOOL_IOHELPER=script),
    )
    if failed.returncode == 0:
        pytest.skip("libarchive has LZO built in")
    assert failed.returncode == 1
    assert "lzop" in vsptest.last_json(failed.stdout)["error"]["message"]
    assert "STOP" not in [event["event"] for event in one.qmp.events]
    assert not path.exists()
    one.runs()


def test_disk_full(guest, storage):
    """The compressor does not hide what the disk says."""
    one = guest(memory=MEMORY, share=32)
    path = storage.tmpfs("2M") / "image"
    failed = vmspool("save", "--compress=zstd:1", "--json", "--qmp", one.path, path, status=1)
    assert vsptest.last_json(failed.stdout)["error"]["code"] == "no-space"
    assert not path.exists()
    one.runs()


def test_interrupted(guest, folder, fmt):
    one = guest(memory=MEMORY, share=32)
    path = folder / "image"
    saving = vsptest.vmspool_start("save", f"--compress={QUICK.get(fmt, fmt)}", "--limit-rate=4M", "--qmp", one.path, path)
    vsptest.helper_of(saving)
    vsptest.wait_for(lambda: one.status() != "running", "the VM to be paused")
    saving.terminate()
    vsptest.vmspool_end(saving, status=1)
    assert not path.exists()
    one.runs()


def test_not_loaded_when_not_used(folder):
    """Who does not compress does not pay for libarchive and what it draws in."""
    linked = run("ldd", vsptest.HELPER).stdout
    assert "libarchive" not in linked
    assert "libicu" not in linked
