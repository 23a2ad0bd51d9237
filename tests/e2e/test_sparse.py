# test_sparse: zeros that are left out: the same bytes, the same length, less room
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import random

import pytest

import vsptest
from test_helper import CACHES, ENGINES, OLD, TARGETS, check_saved, is_device, prepare, restore, save, targets
from vsptest import MIB


def pieces():
    """Data and zeros in turn, short ones among them, odd lengths, and zeros at the end."""
    rng = random.Random(7)
    made = bytearray()
    for i in range(24):
        length = rng.choice([4096, 12345, 65536, 300000, MIB, 3 * MIB])
        made += rng.randbytes(length) if i % 2 else bytes(length)
    return bytes(made + bytes(5 * MIB + 3))


DATA = memoryview(pieces())
BLOCK = bytes(4096)
ZEROS = sum(4096 for at in range(0, len(DATA) - 4095, 4096) if DATA[at : at + 4096] == BLOCK)


def test_there_are_zeros():
    assert len(DATA) > 16 * MIB
    assert bytes(DATA[-5 * MIB :]) == bytes(5 * MIB)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", TARGETS)
def test_save(targets, target, engine, cache):
    path = targets(target)
    prepare(path, len(DATA))
    save(path, DATA, "--sparse", f"--engine={engine}", f"--cache={cache}")
    check_saved(path, 0, DATA)
    if not is_device(path):
        # Runs shorter than 32 KiB, and the blocks at their edges, are written.
        assert os.stat(path).st_blocks * 512 < len(DATA) - ZEROS + 2 * MIB
        assert restore(path, f"--engine={engine}", f"--cache={cache}") == DATA


@pytest.mark.parametrize("engine", ENGINES)
def test_over_old_data(targets, engine):
    """Where the file held something else, a hole has to be made."""
    path = targets("ext4")
    prepare(path, 0)
    path.write_bytes(OLD * (len(DATA) + MIB))
    save(path, DATA, "--sparse", f"--engine={engine}", "--cache=direct")
    check_saved(path, 0, DATA)


def test_only_zeros(targets):
    path = targets("ext4")
    for length in [1, 4096, 65536, 64 * MIB + 1]:
        prepare(path, length)
        save(path, memoryview(bytes(length)), "--sparse", "--cache=direct")
        assert os.stat(path).st_size == length
        assert os.stat(path).st_blocks * 512 <= 65536


def test_without_the_option_nothing_is_left_out(targets):
    path = targets("ext4")
    prepare(path, 0)
    save(path, memoryview(bytes(8 * MIB)), "--cache=direct")
    assert os.stat(path).st_blocks * 512 >= 8 * MIB


def test_statistics(folder):
    path = folder / "file"
    (folder / "in").write_bytes(DATA)
    report = vsptest.last_json(vsptest.vmspool("copy", "--json", "--sparse", folder / "in", path).stdout)
    assert report["bytes-out"] == len(DATA)
    assert 5 * MIB <= report["hole-bytes"] < len(DATA)
    vsptest.vmspool("copy", "--bypass-cache", path, folder / "out")
    assert (folder / "out").read_bytes() == DATA
