# test_po: every message is in the template, and in each language
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import ast
import re
import shutil
import subprocess

import pytest

import texts

LANGUAGES = [line for line in texts.read("po/LINGUAS").splitlines() if line and not line.startswith("#")]
SOURCES = [line for line in texts.read("po/POTFILES.in").splitlines() if line and not line.startswith("#")]


@pytest.fixture(autouse=True)
def gettext():
    if not shutil.which("msgfmt"):
        pytest.skip("gettext is not installed")


def messages(text):
    """{message: translation} of a catalogue, but for its header."""
    found = {}
    for entry in re.split(r"\n\n+", text):
        parts = {}
        for word, lines in re.findall(r'^(msgid|msgstr) ((?:".*"\n?)+)', entry + "\n", re.M):
            parts[word] = "".join(ast.literal_eval(line) for line in lines.splitlines())
        if parts.get("msgid"):
            found[parts["msgid"]] = parts["msgstr"]
    return found


def test_sources():
    with_messages = {
        str(p)
        for p in texts.tree(".c")
        if p.parts[0] in ("src", "tools") and re.search(r"\bN?_\(", texts.read(p))
    }
    assert set(SOURCES) == with_messages
    assert SOURCES == sorted(SOURCES)


def test_messages_are_whole():
    """GLib's format macros end a message for xgettext."""
    for source in SOURCES:
        for call in re.findall(r'\bN?_\(((?:\s*(?:"(?:[^"\\]|\\.)*"|\w+))+)\)', texts.read(source)):
            assert not re.search(r"\bG_\w+_FORMAT\b", call), f"{source}: {call}"


def test_template():
    """ninja vmspool-pot, then ninja vmspool-update-po, bring it up to date."""
    fresh = subprocess.run(
        ["xgettext", "--from-code=UTF-8", "--keyword=_", "--keyword=N_", "--output=-", "--no-wrap", *SOURCES],
        cwd=texts.SOURCE, capture_output=True, text=True, timeout=texts.LIMIT, check=True,
    ).stdout
    assert set(messages(fresh)) == set(messages(texts.read("po/vmspool.pot")))


@pytest.mark.parametrize("language", LANGUAGES)
def test_language(language):
    catalogue = texts.SOURCE / f"po/{language}.po"
    done = subprocess.run(
        ["msgfmt", "--check", "--statistics", "--output-file=/dev/null", catalogue],
        capture_output=True, text=True, timeout=texts.LIMIT, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d+ translated messages\.\n", done.stderr), done.stderr

    translated = messages(texts.read(f"po/{language}.po"))
    assert set(translated) == set(messages(texts.read("po/vmspool.pot")))
    for message, translation in translated.items():
        # What others are added to stays as it was.
        assert message.endswith(" ") == translation.endswith(" "), message
        assert message.endswith(".") == translation.endswith("."), message
        # Options and words for programs are the same in each language.
        assert sorted(re.findall(r"--[a-z-]+", message)) == sorted(re.findall(r"--[a-z-]+", translation))
