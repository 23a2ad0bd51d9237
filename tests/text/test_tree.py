# test_tree: rules of the tree that a compiler does not see
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import re

import pytest

import texts

SOURCES = texts.tree(".c", ".h", ".S", ".py")
LIBRARY = [p for p in SOURCES if p.parts[0] == "src"]
PRODUCT = [p for p in SOURCES if p.parts[0] in ("src", "tools", "include")]


def holders(pattern, paths):
    return {str(p) for p in paths if re.search(pattern, texts.read(p), re.M)}


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_head(path):
    """What the file is, and its licence."""
    lines = texts.read(path).splitlines()
    assert any(re.match(rf"(#|/?\s?\*) {re.escape(path.stem)}(\.\w+)?: ", line) for line in lines[:4])
    assert "SPDX-License-Identifier: LGPL-2.1-or-later" in "\n".join(lines[:60])


def test_length():
    """Much past 600 lines there is a second noun in a file. Tests are lists, and may be longer."""
    lengths = {p: texts.read(p).count("\n") for p in SOURCES}
    assert {str(p): n for p, n in lengths.items() if n > (650 if p in PRODUCT else 900)} == {}


def test_close_has_one_home():
    assert holders(r"(?<![\w>.])close\(", [p for p in PRODUCT if p.suffix == ".c"]) == {"src/util/vspfd.c"}


@pytest.mark.parametrize(
    "header, home",
    [
        ("liburing", "src/iohelper/engine-uring.c"),
        ("json-glib/", "src/util/vspjson.c"),
        ("libxml/", "src/util/vspxml.c"),
    ],
)
def test_library_has_one_home(header, home):
    assert holders(rf"#include <{header}", PRODUCT) == {home}


def test_one_place_calls_the_endpoints():
    assert holders(r"->ops->(?!kind\b)", LIBRARY) == {"src/iohelper/endpoint.c"}


def test_layers():
    """The compiler sees to it; this says so in words when it is the include path that is wrong."""
    names = {layer: {p.name for p in LIBRARY if p.parts[1] == layer and p.suffix == ".h"} for layer in ("util", "vm", "iohelper")}
    below = {"util": {"util"}, "vm": {"util", "vm"}, "iohelper": {"util", "iohelper"}}
    for path in LIBRARY:
        allowed = {"config.h"}.union(*(names[layer] for layer in below[path.parts[1]]))
        assert set(re.findall(r'#include "([^"]+)"', texts.read(path))) <= allowed, path
    for path in PRODUCT:
        if path.parts[0] == "tools":
            assert set(re.findall(r'#include "([^"]+)"', texts.read(path))) <= {"config.h", "tool.h"}


def test_nothing_is_left_to_do():
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"])
    text = [p for p in texts.tree() if p.suffix not in {".bin", ".img", ".save"} and "corpus" not in p.parts]
    found = set()
    for path in text:
        if re.search(rf"\b({words})\b", (texts.SOURCE / path).read_text(encoding="utf-8", errors="replace")):
            found.add(str(path))
    assert found == set()


def test_symbols_are_in_order():
    assert texts.symbols() == sorted(texts.symbols())


def test_the_library_keeps_its_hands_off():
    """Library code never prints, never exits, never changes the locale or a signal's disposition."""
    paths = [p for p in LIBRARY if p.parts[1] in ("util", "vm") and p.suffix == ".c"]
    calls = r"(?<!\w)(printf|puts|g_print|g_printerr|exit|abort|setlocale|signal|sigaction)\("
    assert holders(calls, paths) == set()
