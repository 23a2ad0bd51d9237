# test_libvirt: in the place of libvirt's own helper, and images that go both ways
#
# With a libvirtd of our own (tests/lib/vsplibvirt.py), in which vmspool_iohelper is mounted over
# libvirt_iohelper.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import shutil
import tempfile

import pytest

import vsptest
from vsplibvirt import STOCK, Domain, Libvirt
from vsptest import vmspool


@pytest.fixture(scope="module")
def libvirt():
    if not vsptest.may_mount():
        pytest.skip("needs root, for mounts")
    if not STOCK.exists() or not shutil.which("libvirtd"):
        pytest.skip("needs libvirtd")
    path = tempfile.mkdtemp(prefix="vsptest.", dir="/var/tmp")
    one = Libvirt(path)
    vsptest.KNOWN.add(one.daemon.pid)
    yield one
    one.stop()
    vsptest.KNOWN.discard(one.daemon.pid)
    vsptest.remove_tree(path)


@pytest.fixture
def domain(folder, libvirt):
    libvirt.use(vsptest.HELPER)
    one = Domain(folder, name=folder.name)
    one.define(libvirt)
    yield one
    one.stop()


BYPASS = [[], ["--bypass-cache"]]


@pytest.mark.parametrize("restore", BYPASS, ids=["cached-restore", "direct-restore"])
@pytest.mark.parametrize("save", BYPASS, ids=["cached-save", "direct-save"])
def test_save_and_restore(libvirt, domain, folder, save, restore):
    image = folder / "image"
    libvirt.virsh("save", domain.name, image, *save)
    assert libvirt.helper_ran()
    assert domain.state() == "shut off"

    libvirt.virsh("restore", image, *restore)
    # Without --bypass-cache libvirtd hands QEMU the file itself.
    assert libvirt.helper_ran() == bool(restore)
    domain.runs()


def test_managed_save(libvirt, domain):
    libvirt.virsh("managedsave", domain.name, "--bypass-cache")
    assert libvirt.helper_ran()
    libvirt.virsh("start", domain.name)
    domain.runs()


@pytest.mark.parametrize("bypass", BYPASS, ids=["cached", "direct"])
def test_dump(libvirt, domain, folder, bypass):
    core = folder / "core"
    libvirt.virsh("dump", "--memory-only", domain.name, core, *bypass)
    assert libvirt.helper_ran()
    domain.runs()
    vsptest.verify_core(core, domain)


def test_disk_full(libvirt, domain, storage):
    """The reason comes from our helper, by its stderr."""
    image = storage.tmpfs("16M") / "image"
    failed = libvirt.virsh("save", domain.name, image, "--bypass-cache", status=None)
    assert failed.returncode != 0
    assert "No space left on device" in failed.stderr
    assert not image.exists()
    domain.runs()


@pytest.mark.parametrize("helper", ["ours", "stock"])
def test_restore_what_libvirt_saved(libvirt, domain, folder, helper):
    libvirt.use(vsptest.HELPER if helper == "ours" else libvirt.stock)
    image = folder / "image"
    command = domain.native()
    libvirt.virsh("save", domain.name, image, "--bypass-cache")
    assert libvirt.helper_ran()

    info = vsptest.last_json(vmspool("info", "--json", image).stdout)
    assert info["complete"] is True
    vmspool("restore", image, "--", *command)
    domain.attach()
    vsptest.Guest.runs(domain)
    vsptest.Guest.stop(domain)


def test_libvirt_restores_what_we_saved(libvirt, domain, folder):
    image = folder / "image"
    xml = folder / "saved.xml"
    xml.write_text(libvirt.virsh("dumpxml", "--migratable", domain.name).stdout)
    vmspool("save", "--qmp", domain.path, "--xml", xml, "--bypass-cache", image)
    vsptest.wait_for(lambda: domain.state() == "shut off", "libvirt to see that QEMU ended", period=0.05)

    libvirt.virsh("restore", image, "--bypass-cache")
    domain.runs()
