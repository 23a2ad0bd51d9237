# test_symbols: the library exports what its map says, the headers declare it, and no more
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import pathlib
import re
import subprocess

import vsptest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = vsptest.BUILD / "src/libvmspool.so"
VERSION = "VMSPOOL_0.1"


def in_map():
    text = (SOURCE / "src/libvmspool.sym").read_text()
    return set(re.findall(r"^\s+(vsp\w+);", text, re.M))


def exported():
    """name -> version, of all that the library defines."""
    out = subprocess.run(
        ["nm", "-D", "--defined-only", str(LIBRARY)], check=True, capture_output=True, text=True
    ).stdout
    names = {}
    for line in out.splitlines():
        name, _, version = line.split()[-1].partition("@@")
        if name != VERSION:
            names[name] = version
    return names


def test_exactly_the_map():
    assert set(exported()) == in_map()


def test_all_have_a_version():
    assert set(exported().values()) == {VERSION}


def declared():
    text = "".join(p.read_text() for p in sorted((SOURCE / "include/vmspool").glob("*.h")))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.M | re.S)
    text = re.sub(r"typedef[^;]*;", "", text)
    return set(re.findall(r"\b(vsp\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*;", text))


def test_declared_is_exported():
    assert declared() - in_map() == set()


def test_exported_is_declared():
    assert in_map() - declared() == set()


def test_soname():
    out = subprocess.run(["readelf", "-d", str(LIBRARY)], check=True, capture_output=True, text=True).stdout
    assert "soname: [libvmspool.so.0]" in out


def test_needs_little():
    """What every program that embeds the library has to load."""
    out = subprocess.run(["readelf", "-d", str(LIBRARY)], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*?)\.so", out))
    sanitizers = {"libasan", "libubsan", "libtsan"}
    known = {"libglib-2.0", "libgio-2.0", "libgobject-2.0", "libjson-glib-1.0", "libxml2", "libc", "ld-linux-x86-64"}
    assert needed - known - sanitizers == set()
