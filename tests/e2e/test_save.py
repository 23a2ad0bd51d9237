# test_save: a VM saved and restored, and the proof by the guest that nothing was lost
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import stat

import pytest

import vsptest
from vsptest import MIB, last_json, vmspool

CACHES = ["auto", "direct", "dontcache", "paced", "cached"]
WAYS = [["--bypass-cache"], *(["--cache", cache] for cache in CACHES), []]


def words_id(words):
    return words[-1].lstrip("-") if words else "default"


def info(image):
    return last_json(vmspool("info", "--json", image).stdout)


def save(guest, image, *words):
    report = last_json(vmspool("save", "--qmp", guest.path, "--json", *words, image).stdout)
    assert report["ok"] is True
    return report


def restore(guest, image, *words, by="command"):
    """Into a QEMU that the tool starts, or into one that waits for it."""
    if by == "command":
        report = last_json(vmspool("restore", "--json", *words, image, "--", *guest.command()).stdout)
        guest.attach()
        assert vsptest.alive(report["pid"])
    else:
        guest.start("-incoming", "defer")
        report = last_json(vmspool("restore", "--json", *words, image, "--qmp", guest.path).stdout)
    assert report["ok"] is True
    return report


@pytest.mark.parametrize("by", ["command", "qmp"])
@pytest.mark.parametrize("way", WAYS, ids=words_id)
def test_running(guest, folder, way, by):
    vm = guest()
    image = folder / "image"
    save(vm, image, *way)
    vm.next_life()

    what = info(image)
    assert what["complete"] is True
    assert what["was-running"] is True
    assert what["seal"] == "valid"
    assert what["payload-offset"] % 4096 == 0
    assert what["payload-offset"] + what["payload-size"] == image.stat().st_size
    assert what["domain-memory"] == vm.memory * MIB

    restore(vm, image, *way, by=by)
    vm.runs()
    assert image.stat().st_size == what["file-size"]


@pytest.mark.parametrize("by", ["command", "qmp"])
def test_paused(guest, folder, by):
    vm = guest()
    vm.qmp("stop")
    save(vm, folder / "image", "--bypass-cache")
    vm.next_life()
    assert info(folder / "image")["was-running"] is False

    restore(vm, folder / "image", by=by)
    vm.stands()


@pytest.mark.parametrize("said", ["at the save", "at the restore"])
@pytest.mark.parametrize("wanted", ["--running", "--paused"])
def test_run_state_as_told(guest, folder, wanted, said):
    vm = guest()
    if wanted == "--running":
        vm.qmp("stop")
    image = folder / "image"
    save(vm, image, *([wanted] if said == "at the save" else []))
    vm.next_life()
    before = image.read_bytes()

    restore(vm, image, *([wanted] if said == "at the restore" else []))
    if wanted == "--running":
        vm.runs()
    else:
        vm.stands()
    # What the image says is not changed by restoring it in another way.
    assert image.read_bytes() == before


def test_keep_paused(guest, folder):
    """The VM stays, and may go on: as a snapshot of what goes on elsewhere."""
    vm = guest()
    save(vm, folder / "image", "--keep-paused", "--bypass-cache")
    twin = vm.twin()
    assert vm.qmp("query-status")["running"] is False
    vm.qmp("cont")
    vm.runs()

    restore(twin, folder / "image")
    twin.runs()
    twin.stop()
    vm.runs()


def test_save_after_save(guest, folder):
    vm = guest()
    for life in range(3):
        image = folder / f"image{life}"
        save(vm, image, "--bypass-cache")
        vm.next_life()
        restore(vm, image, "--bypass-cache")
        vm.runs()


def test_same_image_twice(guest, folder):
    vm = guest()
    save(vm, folder / "image")
    vm.next_life()
    twin = vm.twin()
    restore(vm, folder / "image")
    restore(twin, folder / "image")
    vm.runs()
    twin.runs()
    twin.stop()


def test_large_guest(guest, folder):
    """2 GiB, half of it zero."""
    vm = guest(memory=2048, share=128)
    save(vm, folder / "image", "--bypass-cache")
    vm.next_life()
    assert info(folder / "image")["payload-size"] < 1300 * MIB
    restore(vm, folder / "image", "--bypass-cache")
    vm.runs()


def test_boots_from_disk(guest, folder):
    """With a real firmware, and a disk that QEMU holds locked."""
    vm = guest(disk=True)
    save(vm, folder / "image", "--bypass-cache")
    vm.next_life()
    restore(vm, folder / "image", "--bypass-cache")
    vm.runs()


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "ext4-4k", "device-4k"])
def test_storage(guest, storage, kind):
    vm = guest()
    image = {
        "ext4": lambda: storage.filesystem("ext4", 512 * MIB) / "image",
        "xfs": lambda: storage.filesystem("xfs", 512 * MIB) / "image",
        "tmpfs": lambda: storage.tmpfs("512M") / "image",
        "ext4-4k": lambda: storage.filesystem("ext4", 512 * MIB, sector=4096) / "image",
        "device-4k": lambda: storage.loop(512 * MIB, sector=4096),
    }[kind]()
    save(vm, image, "--bypass-cache")
    vm.next_life()
    assert info(image)["complete"] is True
    restore(vm, image, "--bypass-cache")
    vm.runs()


def test_strict(guest, folder, storage):
    """Refused where there is no direct I/O, before the VM is touched."""
    vm = guest()
    image = storage.tmpfs("512M") / "image"
    failed = vmspool("save", "--qmp", vm.path, "--bypass-cache", "--strict", image, status=None)
    # Linux from 6.6 on has direct I/O on tmpfs.
    if failed.returncode == 0:
        vm.next_life()
        restore(vm, image, "--bypass-cache", "--strict")
    else:
        assert failed.returncode == 1
        assert not image.exists()
        assert "STOP" not in {event["event"] for event in vm.qmp.events}
    vm.runs()


def test_qemu_takes_the_payload_alone(guest, folder):
    vm = guest()
    image = folder / "image"
    save(vm, image, "--bypass-cache")
    vm.next_life()
    start = info(image)["payload-offset"]
    vm.start("-incoming", f"exec:tail -c +{start + 1} {image}")
    # It is paused: so it was while it was saved.
    vsptest.wait_for(lambda: vm.status() != "inmigrate", "QEMU to have its state")
    vm.stands()


def test_domain_xml(guest, folder):
    vm = guest()
    xml = (
        "<domain type='kvm'><name>given</name><uuid>3f1c8d0e-6a63-4b5c-9f8f-8e3b8c1d2a10</uuid>"
        f"<memory unit='MiB'>{vm.memory}</memory><vcpu>1</vcpu>"
        "<os><type arch='x86_64'>hvm</type></os></domain>\n"
    )
    (folder / "given.xml").write_text(xml)
    save(vm, folder / "image", "--xml", folder / "given.xml")
    vm.next_life()
    what = info(folder / "image")
    assert what["domain-name"] == "given"
    start = what["xml-offset"]
    assert (folder / "image").read_bytes()[start : start + len(xml)] == xml.encode()
    restore(vm, folder / "image")
    vm.runs()


def test_recorded_command(guest, folder):
    vm = guest()
    save(vm, folder / "image")
    vm.gone()
    vm.own_path.unlink(missing_ok=True)

    refused = vmspool("restore", folder / "image", status=2)
    assert "--use-recorded-command" in refused.stderr
    report = last_json(vmspool("restore", "--json", "--use-recorded-command", folder / "image").stdout)
    vm.attach()
    assert vsptest.alive(report["pid"])
    vm.runs()


def test_private_to_the_owner(guest, folder):
    """The image is the VM's memory: nobody else reads it, whatever the umask."""
    vm = guest()
    vmspool("save", "--qmp", vm.path, folder / "image", umask=0)
    vm.next_life()
    assert stat.S_IMODE((folder / "image").stat().st_mode) == 0o600


def test_existing_file_is_kept(guest, folder):
    vm = guest()
    (folder / "image").write_text("precious")
    failed = vmspool("save", "--qmp", vm.path, folder / "image", status=1)
    assert str(folder / "image") in failed.stderr
    assert (folder / "image").read_text() == "precious"
    vm.runs()


def test_cache_is_bypassed(guest, folder):
    """What went past the page cache is not in it afterwards."""
    vm = guest()
    report = save(vm, folder / "image", "--bypass-cache")
    vm.next_life()
    if report["transfer"]["cache"] != "direct":
        pytest.skip(f"no direct I/O on {folder}")
    pages = vsptest.run("fincore", "--bytes", "--noheadings", "--output", "RES", folder / "image").stdout
    assert int(pages) < 2 * MIB


@pytest.mark.parametrize("said", [[], ["save"], ["save", "x"], ["save", "--qmp"], ["restore"], ["no-such-thing"]])
def test_usage(said):
    failed = vmspool(*said, status=2)
    assert failed.stderr or not said


def test_no_monitor(folder):
    failed = vmspool("save", "--qmp", folder / "none", folder / "image", status=1)
    assert str(folder / "none") in failed.stderr
    assert not (folder / "image").exists()
    assert os.listdir(folder) == []
