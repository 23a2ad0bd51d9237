# test_libvirt: in the place of libvirt's own helper, and images that go both ways
#
# A libvirtd of our own runs in the namespaces that tests/lib/isolate made, on empty folders, with
# vmspool_iohelper mounted over libvirt_iohelper. The host's libvirt, its files and its networks are
# out of reach.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import vsptest
from vsptest import run, vmspool

STOCK = pathlib.Path("/usr/lib/libvirt/libvirt_iohelper")


class Libvirt:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.stock = self.folder / "stock"
        self.calls = self.folder / "calls"
        self.log = self.folder / "libvirtd.log"
        shutil.copy2(STOCK, self.stock)

        # /run goes as a whole: no socket of systemd or D-Bus is to be found.
        for path in ["/run", "/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt"]:
            run("mount", "-t", "tmpfs", "vsptest", path)
        for path in ["/run/libvirt", "/run/lock", "/etc/libvirt/qemu", "/etc/libvirt/nwfilter"]:
            os.mkdir(path)
        run("ip", "link", "set", "lo", "up")
        pathlib.Path("/etc/libvirt/qemu.conf").write_text(
            'user = "root"\n'
            'group = "root"\n'
            'security_driver = "none"\n'
            'stdio_handler = "file"\n'
            "cgroup_controllers = []\n"
            "namespaces = []\n"
        )
        pathlib.Path("/etc/libvirt/libvirtd.conf").write_text(
            f'auth_unix_rw = "none"\nlog_outputs = "2:file:{self.log}"\n'
        )
        self.helper = self.folder / "helper"
        self.use(vsptest.HELPER)
        run("mount", "--bind", self.helper, STOCK)
        self.daemon = subprocess.Popen(["libvirtd"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        vsptest.wait_for(
            lambda: self.virsh("version", status=None).returncode == 0, "libvirtd to answer", period=0.05
        )

    def use(self, helper):
        """Which helper libvirtd is to run. Each call is noted, so that a test can see it happened."""
        self.calls.write_text("")
        self.helper.write_text(f'#!/bin/sh\necho "$@" >> {self.calls}\nexec {helper} "$@"\n')
        self.helper.chmod(0o755)

    def helper_ran(self):
        ran = bool(self.calls.read_text())
        self.calls.write_text("")
        return ran

    def virsh(self, *words, status=0):
        return run("virsh", "--quiet", "--connect", "qemu:///system", *words, status=status)

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait(vsptest.LIMIT)


class Domain(vsptest.Guest):
    """The test guest as a domain of libvirt's."""

    def define(self, libvirt):
        self.libvirt = libvirt
        kind = "kvm" if vsptest.ACCELERATOR == "kvm" else "qemu"
        xml = self.folder / f"{self.name}.xml"
        xml.write_text(
            f"""<domain type='{kind}' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>{self.name}</name>
  <memory unit='MiB'>{self.memory}</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <loader type='rom'>{self.boot}</loader>
  </os>
  <devices>
    <emulator>{shutil.which(vsptest.QEMU)}</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-chardev'/>
    <qemu:arg value='file,id=proof,path={self.console.path},append=on'/>
    <qemu:arg value='-device'/>
    <qemu:arg value='isa-debugcon,iobase=0xe9,chardev=proof'/>
    <qemu:arg value='-qmp'/>
    <qemu:arg value='unix:{self.path},server=on,wait=off'/>
  </qemu:commandline>
</domain>
"""
        )
        libvirt.virsh("define", xml)
        libvirt.virsh("start", self.name)
        self.console.wait_passes(1)
        return self

    def native(self):
        """A QEMU command without libvirt in it for the same machine."""
        pid = int(pathlib.Path(f"/run/libvirt/qemu/{self.name}.pid").read_text())
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        line = self.command()
        for option in ["-machine", "-cpu"]:
            if option in words:
                line += [option, words[words.index(option) + 1]]
        return line + ["-object", f"memory-backend-ram,id=pc.ram,size={self.memory}M"]

    def state(self):
        return self.libvirt.virsh("domstate", self.name).stdout.strip()

    def runs(self, limit=vsptest.LIMIT):
        assert self.state() == "running"
        self.console.wait_progress(limit)

    def stop(self):
        self.libvirt.virsh("destroy", self.name, status=None)
        self.libvirt.virsh("undefine", self.name, status=None)


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
