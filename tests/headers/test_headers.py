# test_headers: the public headers stand alone, in C99 and in C++
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import pathlib
import shlex
import shutil
import subprocess

import pytest

import vsptest

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
HEADERS = sorted(str(p.relative_to(INCLUDE)) for p in INCLUDE.glob("vmspool/*.h"))
WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Wundef", "-Wshadow", "-Werror"]
LANGUAGES = {
    "c99": ["-x", "c", "-std=c99", "-Wstrict-prototypes", "-Wmissing-prototypes"],
    "c11": ["-x", "c", "-std=c11"],
    "c++11": ["-x", "c++", "-std=c++11"],
    "c++17": ["-x", "c++", "-std=c++17"],
}
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]


def glib():
    """The flags of the libraries that the headers need; what those include is not to be warned of."""
    flags = subprocess.run(
        ["pkg-config", "--cflags", "glib-2.0", "gio-2.0"], check=True, capture_output=True, text=True
    ).stdout
    return shlex.split(flags.replace("-I", "-isystem "))


def compile(compiler, language, text):
    done = subprocess.run(
        [compiler, *LANGUAGES[language], *WARNINGS, "-fsyntax-only", f"-I{INCLUDE}", *glib(), "-"],
        input=text.strip() + "\n",
        capture_output=True,
        text=True,
        timeout=vsptest.LIMIT,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", ["c99", "c++11"])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("header", HEADERS)
def test_alone(header, compiler, language):
    """The first include of a file, and once more."""
    compile(compiler, language, f"#include <{header}>\n#include <{header}>\nint unused;\n")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_use(compiler, language):
    """What the README shows compiles in each of the languages."""
    compile(
        compiler,
        language,
        """
        #include <vmspool/vmspool.h>
        int save(int *fd);
        int save(int *fd)
        {
            GError *error = NULL;
            vspFileWrapperFd *wfd = vspFileWrapperFdNew(fd, "name", VSP_FILE_WRAPPER_BYPASS_CACHE, &error);
            int rc = wfd ? vspFileWrapperFdClose(wfd, &error) : -1;

            if (rc < 0 && g_error_matches(error, VSP_ERROR, VSP_ERROR_NO_SPACE))
                rc = -2;
            g_clear_error(&error);
            vspFileWrapperFdFree(wfd);
            return rc;
        }
        """,
    )
