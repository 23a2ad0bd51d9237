# test_digest: an image's digest: right, in the seal, and compared before the VM runs
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import ctypes
import os
import random

import pytest

import vsptest
from test_helper import ENGINES, TARGETS, prepare, targets
from vsptest import MIB, vmspool


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XXH = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
XXH.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
XXH.restype = Hash128


def xxh128(data):
    found = XXH(bytes(data), len(data))
    return f"{found.high:016x}{found.low:016x}"


DATA = random.Random(3).randbytes(20 * MIB + 5)


def copy(*words):
    return vsptest.last_json(vmspool("copy", "--json", "--digest", *words).stdout)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", TARGETS)
def test_both_directions(targets, folder, target, engine):
    path = targets(target)
    source = folder / "in"
    for length in [0, 1, 4095, 4096, 4 * MIB, 4 * MIB + 1, len(DATA)]:
        source.write_bytes(DATA[:length])
        prepare(path, length)
        report = copy("--force", f"--engine={engine}", source, path)
        assert report["digest"] == xxh128(DATA[:length])
        assert report["payload-bytes"] == report["raw-bytes"] == length
        if os.path.isfile(path):
            assert copy(f"--engine={engine}", path, "/dev/null")["digest"] == xxh128(DATA[:length])


def test_zero_copy_gives_way(folder):
    """What is digested has to be looked at."""
    path = folder / "file"
    path.write_bytes(DATA)
    words = ["--cache=cached", "--engine=zerocopy", path, "/dev/null"]
    report = copy(*words)
    assert report["engine"] != "zerocopy"
    assert report["digest"] == xxh128(DATA)


def sealed(path):
    return vsptest.last_json(vmspool("info", "--json", path).stdout)


@pytest.fixture
def image(guest, folder):
    """A saved guest: the image, and the guest."""
    one = guest()
    path = folder / "image"
    vmspool("save", "--qmp", one.path, path)
    return path, one.next_life()


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def test_sealed_and_restored(image):
    path, guest = image
    info = sealed(path)
    payload = path.read_bytes()[info["payload-offset"] :]
    assert info["seal"] == "valid"
    assert info["payload-digest"] == xxh128(payload)
    report = vsptest.last_json(vmspool("restore", "--json", path, "--", *guest.command()).stdout)
    assert report["transfer"]["digest"] == info["payload-digest"]
    guest.attach()
    guest.runs()


def test_one_bit_anywhere(image):
    """Whether QEMU stumbles over it or not: the image is told to be corrupt, and no VM runs."""
    path, guest = image
    info = sealed(path)
    first, size = info["payload-offset"], info["payload-size"]
    rng = random.Random(5)
    console = guest.console.text()
    for at in [first, first + 20, first + size // 2, first + size - 1] + [
        first + rng.randrange(size) for _ in range(4)
    ]:
        flip(path, at)
        failed = vmspool("restore", "--json", path, "--", *guest.command(), status=3)
        error = vsptest.last_json(failed.stdout)["error"]
        assert error["code"] == "image-corrupt", (at, error)
        assert str(path) in error["message"]
        assert "another copy" in error["message"]
        assert guest.console.text() == console
        flip(path, at)
    vmspool("restore", path, "--", *guest.command())
    guest.attach()
    guest.runs()


def test_flipped_for_a_qemu_that_waits(image):
    path, guest = image
    info = sealed(path)
    flip(path, info["payload-offset"] + info["payload-size"] // 2)
    guest.start("-incoming", "defer")
    failed = vmspool("restore", "--json", path, "--qmp", guest.path, status=3)
    assert vsptest.last_json(failed.stdout)["error"]["code"] == "image-corrupt"
    assert guest.status() != "running"


def test_without(guest, folder):
    one = guest()
    path = folder / "image"
    vmspool("save", "--no-digest", "--qmp", one.path, path)
    info = sealed(path)
    assert info["seal"] == "valid"
    assert "payload-digest" not in info
    one.next_life()
    vmspool("restore", path, "--", *one.command())
    one.attach()
    one.runs()


def test_not_compared(image):
    path, guest = image
    report = vsptest.last_json(
        vmspool("restore", "--no-digest", "--json", path, "--", *guest.command()).stdout
    )
    assert "digest" not in report["transfer"]
    guest.attach()
    guest.runs()
