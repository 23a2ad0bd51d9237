# test_manual: the manual says what the code does: functions, codes, keys and words
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import ast
import json
import re
import shutil

import pytest

import texts

HEADERS = "\n".join(texts.read(p) for p in texts.tree(".h") if p.parts[0] == "include")


def squeeze(text):
    """C without comments and layout."""
    text = re.sub(r"/\*.*?\*/|^ *#[^\n]*", " ", text, flags=re.S | re.M)
    return re.sub(r"\s*([(),*])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def prototype(name, text):
    """The declaration of a function, or None."""
    for declaration in re.split(r"[;{}]|VSP_BEGIN_DECLS", squeeze(text)):
        if re.search(rf"\b{name}\(", declaration):
            return declaration.partition("::")[2].strip() or declaration.strip()
    return None


def groups():
    """{"vspError": ["vspErrorCodeName", ...], ...} from man/meson.build."""
    text = re.search(r"man_functions = ({.*?^})", texts.read("man/meson.build"), re.M | re.S).group(1)
    return ast.literal_eval(text)


def page_of(symbol):
    homes = [page for page, functions in groups().items() if symbol in functions or symbol == page]
    assert len(homes) == 1, f"{symbol} is in {homes}"
    return homes[0] + ".3"


def test_every_page_is_built():
    listed = re.search(r"man_pages = (\[.*?\])", texts.read("man/meson.build"), re.S).group(1)
    assert sorted(ast.literal_eval(listed)) == texts.pages()


def test_no_link_without_a_function():
    assert {f for functions in groups().values() for f in functions} <= set(texts.symbols())


@pytest.mark.parametrize("symbol", texts.symbols())
def test_function(symbol):
    """Declared once, with a comment that tells of it; the page has the same prototype."""
    declared = prototype(symbol, HEADERS)
    assert declared, f"{symbol} is in no header"
    assert prototype(symbol, texts.section(page_of(symbol), "SYNOPSIS")) == declared
    # The comment stands right before it, or names it.
    assert re.search(rf"/\*\* *(\n \* *)?{symbol}:", HEADERS), f"{symbol} has no comment of its own"
    comment = re.search(rf"/\*\* *(?:\n \* *)?{symbol}:.*?\*/", HEADERS, re.S).group(0)
    assert "Since: " in comment


def test_options_that_pages_name():
    """What a page calls a function of ours is one."""
    for page in texts.pages():
        if page.endswith(".3"):
            named = set(re.findall(r"\*\*(vsp\w+)\*\*\\ \(\)", texts.page(page)))
            assert named <= set(texts.symbols()), page


def test_cross_references():
    known = set(texts.pages()) | {symbol + ".3" for symbol in texts.symbols()}
    for page in texts.pages():
        for name, number in re.findall(r"\b(v(?:mspool|sp)[\w-]*)\((\d)\)", texts.page(page)):
            assert f"{name}.{number}" in known, f"{page} refers to {name}({number})"


@pytest.mark.parametrize("page", texts.pages())
def test_page_is_sound(page):
    built = texts.BUILD / "man" / page
    if not built.exists():
        pytest.skip("built without docutils")
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    done = texts.run("sh", "-c", 'groff -man -t -ww -Tutf8 -z "$1" 2>&1', "sh", built)
    assert done == ""
    assert re.search(r"^SEE ALSO$", texts.page(page), re.M)


def codes():
    """[("FAILED", 0), ...] by the header."""
    return [(n, int(v)) for n, v in re.findall(r"^ +VSP_ERROR_(\w+) = (\d+),", HEADERS, re.M)]


def test_error_codes():
    table = re.findall(r"^(\d+) +``([\w-]+)`` ", texts.page("vspError.3"), re.M)
    assert table == [(str(value), name.lower().replace("_", "-")) for name, value in codes()]
    words = dict(re.findall(r'\[VSP_ERROR_(\w+)\] = "([\w-]+)"', texts.read("src/util/vsperror.c")))
    assert words == {name: name.lower().replace("_", "-") for name, value in codes()}
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| `([\w-]+)` \|", texts.read("docs/errors.md"), re.M)
    assert rows == [(str(value), name, words[name]) for name, value in codes()]


def described(page, mark=r"(,| \(|$)"):
    """Keys that a page describes: **key** or **a**, **b** (type) at the beginning of a line."""
    found = set()
    for line in texts.page(page).splitlines():
        if re.match(rf"\*\*[a-z-]+\*\*{mark}", line):
            found |= set(re.findall(r"\*\*([a-z-]+)\*\*", line.partition("(")[0]))
    return found


def keys_in(*sources):
    """Keys of reports, as the sources spell them."""
    text = "\n".join(texts.read(source) for source in sources)
    return set(re.findall(r'(?:"{sv}", |\b\w*(?:add|Report)[A-Z]\w*\(\s*&?[\w.>-]+,\s*)"([a-z-]+)"', text))


def test_statistics():
    assert described("vmspool-statistics.5") == keys_in("src/util/vspstatus.c", "src/util/vspfilewrapper.c")


def test_statistics_of_a_copy(tmp_path):
    """What really comes is described, in its type."""
    (tmp_path / "in").write_bytes(bytes(100001))
    report = json.loads(texts.run(texts.TOOL, "copy", "--json", tmp_path / "in", tmp_path / "out"))
    assert report.pop("ok") is True
    assert set(report) <= described("vmspool-statistics.5")
    kinds = {"text": str, "number": int, "truth": bool}
    types = {}
    for names, kind in re.findall(r"^(\*\*.*\*\*) \((\w+)", texts.page("vmspool-statistics.5"), re.M):
        types |= {name: kinds[kind] for name in re.findall(r"\*\*([a-z-]+)\*\*", names)}
    for key, value in report.items():
        assert type(value) is types[key], key


def test_capabilities():
    printed = texts.run(texts.HELPER, "--print-capabilities").splitlines()
    table = re.findall(r"^``([\w -]+)`` +(\d+\.\d+) ", texts.page("vmspool_iohelper.8"), re.M)
    # A build may lack an engine.
    assert set(printed) <= {word for word, since in table}
    assert {word for word, since in table} - set(printed) <= {"engine-uring"}


def reported(operation):
    """Keys of the report of a flow, by its source and by what the flows share."""
    return keys_in(f"src/vm/vspvm{operation}.c", "src/vm/vspflow.c", "src/vm/vsptransfer.c")


@pytest.mark.parametrize("operation", ["save", "restore", "dump"])
def test_report(operation):
    assert described(f"vmspool-{operation}.1") - {"ok"} == reported(operation)


def test_report_of_an_image():
    assert described("vmspool-info.1", r".* \(\w") - {"ok"} == keys_in("src/vm/vspsaveimage.c")


def test_report_of_a_verification():
    keys = described("vmspool-verify.1", r".* \(\w") - {"ok", "error"}
    assert keys == keys_in("src/vm/vspsaveimageverify.c")


def test_report_of_a_conversion():
    keys = described("vmspool-convert.1", r".* \(\w") - {"ok", "error"}
    assert keys == keys_in("src/vm/vspsaveimageconvert.c")


def test_report_of_an_edit():
    assert described("vmspool-xml.1", r".* \(\w") - {"ok", "error"} == keys_in(
        "src/vm/vspsaveimageedit.c", "tools/cmd-xml.c"
    )
