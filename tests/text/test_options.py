# test_options: every option is in --help, in the manual and in the completion, or in none of them
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import re

import pathlib
import pytest

import texts

COMPLETION = pathlib.Path("/usr/share/bash-completion/bash_completion")


def complete(*words):
    """What bash offers for the last of @words."""
    if not COMPLETION.exists():
        pytest.skip("bash-completion is not installed")
    script = r"""
        . "$1"; . "$2"; shift 2
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
        _vmspool 2>/dev/null
        printf '%s\n' "${COMPREPLY[@]}"
    """
    return texts.run(
        "bash", "-c", script, "bash", COMPLETION, texts.SOURCE / "completion/vmspool", "vmspool", *words
    ).split()


def names(options):
    return {option.rstrip("=") for option in options}


@pytest.mark.parametrize("command", texts.commands())
def test_manual(command):
    assert texts.page_options(f"vmspool-{command}.1") == texts.help_options(texts.TOOL, command)


@pytest.mark.parametrize("command", texts.commands())
def test_completion(command):
    assert names(complete(command, "-")) == texts.help_options(texts.TOOL, command)


@pytest.mark.parametrize("command", texts.commands())
def test_values(command):
    """An option that takes a value is completed with its equals sign, and where --help lists the
    words that it takes, with these."""
    text = texts.run(texts.TOOL, command, "--help")
    with_value = set(re.findall(r"(--[a-z-]+)=", text))
    assert {o.rstrip("=") for o in complete(command, "--") if o.endswith("=")} == with_value
    for option, listed in re.findall(r"(--[a-z-]+)=[A-Z]+ .*: (auto,.*)", text):
        words = set(re.split(r", | or ", listed))
        assert set(complete(command, option + "=")) == words
        assert set(complete(command, option, "")) == words


def test_commands():
    assert set(complete("")) == set(texts.commands()) | {"--help", "--version"}
    synopsis = texts.section("vmspool.1", "SYNOPSIS")
    assert set(re.findall(r"\*\*vmspool (\w+)\*\*", synopsis)) == set(texts.commands())
    assert texts.page_options("vmspool.1") == {"--help", "--version"}


def test_files(tmp_path):
    (tmp_path / "one.save").touch()
    start = str(tmp_path / "on")
    assert complete("info", start) == [start + "e.save"]
    assert complete("save", "--qmp=" + start) == [start + "e.save"]
    assert complete("save", "--qmp", start) == [start + "e.save"]


def test_helper():
    assert texts.page_options("vmspool_iohelper.8") == texts.help_options(texts.HELPER)
