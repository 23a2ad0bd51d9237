# test_docs: links lead somewhere, and what is quoted is there
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import re

import pytest

import texts

PAGES = texts.tree(".md")
FOLDERS = ("bench/", "completion/", "docs/", "examples/", "include/", "man/", "po/", "src/", "tests/", "tools/")


def anchors(text):
    """As the hosts of git repositories make them out of headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links(page):
    text = texts.read(page)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        to = (texts.SOURCE / page.parent / path).resolve() if path else texts.SOURCE / page
        assert to.exists(), f"{target} is not there"
        if anchor:
            assert anchor in anchors(to.read_text(encoding="utf-8")), f"{target} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_paths(page):
    """A path of the tree that is quoted exists."""
    for quoted in re.findall(r"`([\w./-]+)`", texts.read(page)):
        if quoted.startswith(FOLDERS):
            assert (texts.SOURCE / quoted).exists(), f"{quoted} is not there"


def test_listing():
    """The program in the README is the one that is compiled and run."""
    program = texts.read("examples/save-twenty-lines.c").partition("*/\n")[2]
    assert f"<!-- examples/save-twenty-lines.c -->\n```c\n{program}```\n" in texts.read("README.md")


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "COPYING"], ids=str)
def test_layout(page):
    text = texts.read(page)
    assert text.startswith("# ") and text.endswith("\n") and not text.endswith("\n\n")
    assert not re.search(r"[ \t]+$", text, re.M)
