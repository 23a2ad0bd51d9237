# test_layers: a wrong include does not compile
#
# Each layer's own command line, as the build has it, is given a file that includes a header of another.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import pathlib
import shlex
import subprocess

import pytest

import vsptest

# One file of each layer, whose command line stands for it.
SAMPLES = {
    "util": "src/util/vspfd.c",
    "vm": "src/vm/vspqmp.c",
    "iohelper": "src/iohelper/job.c",
    "tools": "tools/main.c",
}
HEADERS = {
    "public": "vmspool/vmspool.h",
    "util": "vspfd.h",
    "vm": "vspqmp.h",
    "iohelper": "job.h",
    "tools": "tool.h",
}
SEES = {
    "util": {"public", "util"},
    "vm": {"public", "util", "vm"},
    "iohelper": {"public", "util", "iohelper"},
    "tools": {"public", "tools"},
}


def command(sample):
    for entry in json.loads((vsptest.BUILD / "compile_commands.json").read_text()):
        if entry["file"].endswith(sample):
            return entry
    raise vsptest.Failure(f"{sample} is not built")


def compiles(layer, text):
    entry = command(SAMPLES[layer])
    words = shlex.split(entry["command"])
    # Without what is about the file itself: input, output and list of dependencies.
    cut = words.index("-MD") if "-MD" in words else words.index("-o")
    words = [w for w in words[:cut] if w != "-c"] + ["-fsyntax-only", "-x", "c", "-"]
    return subprocess.run(
        words, cwd=entry["directory"], input=text, capture_output=True, text=True, timeout=vsptest.LIMIT
    )


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("layer", SAMPLES)
def test_include(layer, header):
    done = compiles(layer, f'#include "{HEADERS[header]}"\n')
    if header in SEES[layer]:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert "No such file" in done.stderr or "file not found" in done.stderr


@pytest.mark.parametrize("layer", SAMPLES)
def test_the_headers_are_there(layer):
    root = pathlib.Path(__file__).resolve().parents[2]
    assert (root / SAMPLES[layer]).exists()
