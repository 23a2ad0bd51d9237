# daemons: workloads as libvirt's users meet them: virsh, with the stock helper and with ours in its place
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import shutil

import vsptest
from guests import page_cache, settle, timed_process
from rounds import Entry, RunError, Workload
from setting import STOCK


def possible(setting):
    if not vsptest.may_mount():
        setting.notice("virsh is left out: that takes root, for a libvirtd in namespaces of its own")
        return False
    return all(
        [
            setting.have("libvirtd", "libvirt-daemon"),
            setting.have("virsh", "libvirt-clients"),
            setting.have(STOCK, "libvirt-daemon"),
        ]
    )


class Daemons:
    """One domain that is saved and restored in turn, and the libvirtd that it belongs to."""

    def __init__(self, setting):
        self.setting = setting
        self.libvirt = None
        self.domain = None
        self.image = setting.folder / "virsh-image"
        self.xml = setting.folder / "virsh-xml"
        self.native = None
        self.saved = False
        self.said = ""  # by the guest, until it was saved

    def start(self):
        if self.libvirt:
            return
        import vsplibvirt  # not before it is known that there is a libvirt

        folder = self.setting.folder / "libvirt"
        folder.mkdir()
        self.libvirt = vsplibvirt.Libvirt(folder)
        self.domain = vsplibvirt.Domain(folder, name="bench", memory=self.setting.memory, share=0)
        self.domain.define(self.libvirt)
        self.native = self.domain.native()
        self.xml.write_text(self.libvirt.virsh("dumpxml", "--migratable", "bench").stdout)

    def _virsh(self, *words):
        command = ["virsh", "--quiet", "--connect", "qemu:///system", *words]
        sample, _ = timed_process(command)
        # What virsh takes of the processor is no figure: the daemon does the work.
        return {"seconds": sample["seconds"], "bytes": os.path.getsize(self.image)}

    def _running(self):
        self.start()
        if self.saved:
            self.libvirt.virsh("restore", self.image)
            self.saved = False

    def _save(self, way, options):
        self._running()
        if self.image.exists():
            self.image.unlink()
        settle(self.setting)
        if way == "vmspool":
            sample, _ = timed_process(
                [
                    *(self.setting.tool, "save", "--json", "--qmp", self.domain.path),
                    *("--xml", self.xml, *options, self.image),
                ],
                env={**os.environ, "VMSPOOL_IOHELPER": str(self.setting.helper)},
            )
            sample["bytes"] = os.path.getsize(self.image)
            vsptest.wait_for(lambda: self.domain.state() == "shut off", "libvirt to see it", period=0.05)
        else:
            self.libvirt.use(self.libvirt.stock if way == "stock" else self.setting.helper)
            sample = self._virsh("save", "bench", self.image, *options)
        self.saved = True
        self.said = self.domain.console.text()
        return sample

    def _restore(self, way, state, options, verify):
        self.start()
        if not self.saved:
            self._save("drop-in", ["--bypass-cache"])
        page_cache(self.image, state)
        if way == "vmspool":
            sample, _ = timed_process(
                [*(self.setting.tool, "restore", "--json", *options, self.image, "--"), *self.native],
                env={**os.environ, "VMSPOOL_IOHELPER": str(self.setting.helper)},
            )
            sample["bytes"] = os.path.getsize(self.image)
            self.domain.attach()
            if verify:
                vsptest.Guest.runs(self.domain)
            vsptest.Guest.stop(self.domain)
            vsptest.wait_for(lambda: not self._alone(), "QEMU to end")
            # The image is restored again; this life of the guest did not happen.
            self.domain.console.path.write_text(self.said)
        else:
            self.libvirt.use(self.libvirt.stock if way == "stock" else self.setting.helper)
            sample = self._virsh("restore", self.image, *options)
            self.saved = False
            if verify:
                self.domain.runs()
        return sample

    def _alone(self):
        """Whether a QEMU that is not libvirt's still has the domain's name."""
        path = str(self.domain.own_path)
        return any(path in entry[3] and entry[1] != "Z" for entry in vsptest.processes().values())

    @staticmethod
    def _entry(name, title, function):
        def run(verify):
            try:
                return function(verify)
            except (vsptest.QmpError, vsptest.Failure, AssertionError, OSError) as error:
                raise RunError(str(error)) from error

        return Entry(name, title, run)

    TITLES = {"stock": "virsh, libvirt_iohelper", "drop-in": "virsh, vmspool_iohelper in its place"}

    def save(self, name, title, options):
        titles = {**self.TITLES, "vmspool": "vmspool save"}
        entries = [
            self._entry(way, text, lambda verify, way=way: self._save(way, options))
            for way, text in titles.items()
        ]
        return Workload(name, title, entries, time=True)

    def restore(self, name, title, state, options):
        titles = {**self.TITLES, "vmspool": "vmspool restore, QEMU's start included"}
        if not options:
            # Without --bypass-cache libvirtd gives QEMU the file itself; no helper is in it.
            titles = {"stock": "virsh", "vmspool": titles["vmspool"]}
        entries = [
            self._entry(
                way, text, lambda verify, way=way: self._restore(way, state, options, verify)
            )
            for way, text in titles.items()
        ]
        return Workload(name, title, entries, time=True)

    def close(self):
        if self.domain:
            self.domain.stop()
        if self.libvirt:
            self.libvirt.stop()
            shutil.rmtree(self.libvirt.folder, ignore_errors=True)
        for path in (self.image, self.xml):
            if path.exists():
                path.unlink()
