# vsplibvirt: a libvirtd of our own, and the test guest as a domain of it
#
# It runs in the namespaces that tests/lib/isolate made, on empty folders, with a program of our choice mounted
# over libvirt_iohelper. The host's libvirt, its files and its networks are out of reach.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import pathlib
import shutil
import subprocess

import vsptest
from vsptest import run

STOCK = pathlib.Path("/usr/lib/libvirt/libvirt_iohelper")


class Etc:
    """An /etc of our own over the host's, with libvirt's folder in it empty."""

    def __init__(self, folder):
        self.layers = pathlib.Path(folder) / "etc-layers"
        self.layers.mkdir()
        run("mount", "-t", "tmpfs", "vsptest", self.layers)
        for path in ["upper/libvirt/qemu", "upper/libvirt/nwfilter", "work"]:
            (self.layers / path).mkdir(parents=True)
        os.setxattr(self.layers / "upper/libvirt", "trusted.overlay.opaque", b"y")
        options = f"lowerdir=/etc,upperdir={self.layers}/upper,workdir={self.layers}/work"
        run("mount", "-t", "overlay", "-o", options, "vsptest", "/etc")
        self._add_user()

    def _add_user(self):
        """Debian's libvirt does not start without the user that it would run QEMU as by default. A package
        makes it that is not needed for anything else."""
        name, number = "libvirt-qemu", 64055
        for path, line in [
            ("/etc/passwd", f"{name}:x:{number}:{number}::/:/usr/sbin/nologin\n"),
            ("/etc/group", f"{name}:x:{number}:\n"),
        ]:
            with open(path, "r+", encoding="utf-8") as file:
                if not any(known.startswith(f"{name}:") for known in file):
                    file.write(line)

    def remove(self):
        for path in ["/etc", self.layers]:
            run("umount", "--lazy", path)
        self.layers.rmdir()


class Libvirt:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.stock = self.folder / "stock"
        self.calls = self.folder / "calls"
        self.log = self.folder / "libvirtd.log"
        shutil.copy2(STOCK, self.stock)

        # These go as a whole: libvirt's folders need not be there, nor is any socket of systemd or
        # D-Bus to be found.
        for path in ["/run", "/var/lib", "/var/log", "/var/cache"]:
            run("mount", "-t", "tmpfs", "vsptest", path)
        self.etc = Etc(self.folder)
        for path in ["/run/libvirt", "/run/lock"]:
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
        vsptest.wait_for(self._answers, "libvirtd to answer", period=0.05)

    def _answers(self):
        if self.daemon.poll() is not None:
            raise vsptest.Failure(f"libvirtd ended: {self.log.read_text()}")
        return self.virsh("version", status=None).returncode == 0

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
        self.etc.remove()


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
