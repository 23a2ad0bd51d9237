# texts: the tree's texts, as the tests of them see them
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import pathlib
import re
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["VSPTEST_BUILD"])
TOOL = BUILD / "tools/vmspool"
HELPER = BUILD / "src/iohelper/vmspool_iohelper"
LIMIT = 60


def run(*command, status=0, **more):
    """What @command prints, in English."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT, env=environment, check=False, **more
    )
    assert status is None or done.returncode == status, f"{command}: {done.stderr}"
    return done.stdout


def read(path):
    return (SOURCE / path).read_text(encoding="utf-8")


def tree(*suffixes):
    """Every file of the tree, or those with one of @suffixes, as paths relative to it."""
    found = []
    for folder, folders, names in os.walk(SOURCE):
        folders[:] = [f for f in folders if not f.startswith((".", "build", "__")) and f != "subprojects"]
        for name in names:
            if not suffixes or name.endswith(suffixes):
                found.append((pathlib.Path(folder) / name).relative_to(SOURCE))
    return sorted(found)


def commands():
    """The tool's commands, as --help lists them."""
    return re.findall(r"^  ([a-z]+)  ", run(TOOL, "--help"), re.M)


def help_options(*command):
    """The options that --help prints: {"--json", "-f", ...}."""
    found = set()
    for line in run(*command, "--help").splitlines():
        if line.startswith("  -"):
            found |= options_of(line.split("  ")[1])
    return found


def options_of(text):
    """"-f, --force" and "--cache=MODE" without what is not the option's name."""
    return {word.partition("=")[0] for word in re.split(r",\s*", text.strip())}


def page(name):
    """The source of a page of the manual, what it includes put in."""
    text = read(f"man/{name}.rst")
    return re.sub(r"^\.\. include:: (\S+)$", lambda m: read(f"man/{m.group(1)}"), text, flags=re.M)


def page_options(name):
    found = set()
    for line in page(name).splitlines():
        if re.fullmatch(r"-{1,2}[a-z][\w-]*(=\w+)?(, -{1,2}[a-z][\w-]*(=\w+)?)*", line):
            found |= options_of(line)
    return found


def pages():
    """Names of all pages: "vmspool.1", ..."""
    return sorted(p.name[: -len(".rst")] for p in (SOURCE / "man").glob("*.[1-8].rst"))


def section(name, title):
    """The text below the heading @title of a page, up to the next heading like it."""
    found = re.search(rf"^{re.escape(title)}\n(=+|-+)\n(.*?)(?=^[^\n]+\n\1\n|\Z)", page(name), re.M | re.S)
    assert found, f"{name} has no section {title}"
    return found.group(2)


def symbols():
    """The public functions."""
    return re.findall(r"^\s+(vsp\w+);", read("src/libvmspool.sym"), re.M)
