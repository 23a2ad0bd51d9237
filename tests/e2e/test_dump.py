# test_dump: the VM's memory as an ELF core, page by page where it belongs
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import stat

import pytest

import vsptest
from vsptest import MIB, last_json, vmspool

WAYS = [[], ["--bypass-cache"], *(["--cache", cache] for cache in ["dontcache", "paced", "cached"])]


@pytest.mark.parametrize("way", WAYS, ids=lambda words: words[-1].lstrip("-") if words else "default")
def test_running(guest, folder, way):
    vm = guest()
    core = folder / "core"
    report = last_json(vmspool("dump", "--qmp", vm.path, "--json", *way, core).stdout)
    assert report["ok"] is True
    vm.runs()
    vsptest.verify_core(core, vm)
    assert stat.S_IMODE(core.stat().st_mode) == 0o600


def test_paused(guest, folder):
    vm = guest()
    vm.qmp("stop")
    vmspool("dump", "--qmp", vm.path, "--bypass-cache", folder / "core")
    vm.stands()
    vsptest.verify_core(folder / "core", vm)


def test_large_guest(guest, folder):
    vm = guest(memory=2048, share=128)
    vmspool("dump", "--qmp", vm.path, "--bypass-cache", folder / "core")
    vm.runs()
    vsptest.verify_core(folder / "core", vm)


def test_zeros_take_no_room(guest, folder):
    # Three quarters of the guest's memory stay zero.
    vm = guest(share=192)
    size = {}
    for name, way in {"sparse": [], "full": ["--no-sparse"]}.items():
        core = folder / name
        report = last_json(vmspool("dump", "--qmp", vm.path, "--json", "--bypass-cache", *way, core).stdout)
        vsptest.verify_core(core, vm)
        size[name] = core.stat()
        assert bool(report["transfer"]["hole-bytes"]) == (name == "sparse")
    assert size["sparse"].st_size == size["full"].st_size
    assert size["full"].st_blocks * 512 >= size["full"].st_size
    assert size["sparse"].st_blocks * 512 < size["full"].st_size / 2


def test_twice(guest, folder):
    vm = guest()
    for name in ["one", "two"]:
        vmspool("dump", "--qmp", vm.path, folder / name)
        vm.runs()
        vsptest.verify_core(folder / name, vm)


def test_after_restore(guest, folder):
    vm = guest()
    vmspool("save", "--qmp", vm.path, folder / "image")
    vm.next_life()
    vmspool("restore", folder / "image", "--", *vm.command())
    vm.attach()
    vmspool("dump", "--qmp", vm.path, folder / "core")
    vm.runs()
    vsptest.verify_core(folder / "core", vm)


@pytest.mark.parametrize("kind", ["xfs", "tmpfs", "ext4-4k"])
def test_storage(guest, storage, kind):
    vm = guest()
    core = {
        "xfs": lambda: storage.filesystem("xfs", 512 * MIB) / "core",
        "tmpfs": lambda: storage.tmpfs("512M") / "core",
        "ext4-4k": lambda: storage.filesystem("ext4", 512 * MIB, sector=4096) / "core",
    }[kind]()
    vmspool("dump", "--qmp", vm.path, "--bypass-cache", core)
    vm.runs()
    vsptest.verify_core(core, vm)


def test_kdump(guest, folder):
    """Through a stream it is the flattened form, and the tool says so."""
    vm = guest()
    done = vmspool("dump", "--qmp", vm.path, "--format", "kdump-zlib", folder / "core")
    assert (folder / "core").read_bytes()[:12] == b"makedumpfile"
    assert "makedumpfile" in done.stderr
    vm.runs()


def test_unknown_format(guest, folder):
    vm = guest()
    failed = vmspool("dump", "--qmp", vm.path, "--format", "papyrus", folder / "core", status=1)
    assert "papyrus" in failed.stderr
    assert not (folder / "core").exists()
    vm.runs()
