# test_examples: the programs that users copy from work
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import subprocess

import texts

PROGRAM = texts.BUILD / "examples/save-twenty-lines"


def save(path, data):
    return subprocess.run(
        [PROGRAM, path], input=data, capture_output=True, timeout=texts.LIMIT, check=False
    )


def test_save(tmp_path):
    data = bytes(range(256)) * 40000 + b"tail"
    done = save(tmp_path / "out", data)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_bytes() == data


def test_no_room():
    done = save("/dev/full", bytes(1 << 20))
    assert done.returncode == 1
    assert done.stderr == b"cannot write '/dev/full' at offset 0: No space left on device\n"


def test_no_file(tmp_path):
    done = save(tmp_path / "none" / "out", b"")
    assert done.returncode == 1
    assert b"No such file" in done.stderr
