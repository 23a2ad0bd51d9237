# conftest: what each end-to-end test gets, and what it must not leave behind
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import pathlib
import tempfile

import pytest

import vsptest


@pytest.fixture
def folder():
    """A folder on a disk, not on tmpfs: direct I/O is what most tests are about."""
    base = os.environ.get("VSPTEST_TMPDIR", "/var/tmp")
    path = pathlib.Path(tempfile.mkdtemp(prefix="vsptest.", dir=base))
    yield path
    vsptest.remove_tree(path)


@pytest.fixture(autouse=True)
def no_process_left():
    yield
    # A process that was told to end may take a moment; one that was not stays.
    try:
        vsptest.wait_for(lambda: not vsptest.leftovers(), "processes to end", limit=10)
    except vsptest.Failure:
        left = vsptest.leftovers()
        vsptest.kill_all()
        raise vsptest.Failure(f"processes were left behind: {left}") from None


@pytest.fixture
def guest(folder):
    """Starts guests; what is left of them ends with the test."""
    guests = []

    def make(start=True, passes=1, **options):
        options.setdefault("name", f"guest{len(guests)}")
        one = vsptest.Guest(folder, **options)
        guests.append(one)
        if start:
            one.start()
            one.console.wait_passes(passes)
        return one

    yield make
    for one in guests:
        one.stop()


@pytest.fixture
def storage(folder):
    if not vsptest.may_mount():
        pytest.skip("needs root, for mounts and loop devices")
    one = vsptest.Storage(folder)
    yield one
    one.close()
