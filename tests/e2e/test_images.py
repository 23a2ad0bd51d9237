# test_images: save images made by hand: on block devices, and as libvirt sees them
#
# libvirt's driver runs inside virsh here (qemu:///embed) on an empty folder. It never starts a VM, but
# asks the emulator that an image names for what it can do, so the images name a real one.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import importlib.util
import pathlib
import re
import shutil
import struct
import tempfile

import pytest

import vsplibvirt
import vsptest
from vsptest import run, vmspool

SOURCE = pathlib.Path(__file__).parent.parent / "data/make-images.py"
SPEC = importlib.util.spec_from_file_location("make_images", SOURCE)
images = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(images)


def info(path, status=0):
    return vsptest.last_json(vmspool("info", "--json", path, status=status).stdout)


def xml():
    emulator = shutil.which(vsptest.QEMU)
    return (
        f"<domain type='qemu'><name>guest</name><uuid>{images.UUID}</uuid>"
        f"<memory unit='MiB'>64</memory><vcpu>1</vcpu>"
        f"<os><type arch='x86_64' machine='pc'>hvm</type></os>"
        f"<devices><emulator>{emulator}</emulator></devices></domain>"
    ).encode()


# Block devices: they are longer than what they hold, and the seal says where that ends.


@pytest.mark.parametrize("sector", [512, 4096])
def test_block_device(storage, sector):
    size = 1 << 20
    device = storage.loop(size, sector)
    assert info(device, status=3)["error"]["code"] == "image-foreign"

    # The file ends with the payload, the device does not.
    for sealed, length in [(bytes(40), None), (images.seal(len(images.RAW)), len(images.RAW))]:
        data = images.image(sealed=sealed)
        device.write_bytes(data)
        report = info(device)
        offset = len(data) - len(images.RAW)
        assert report["block-device"] is True
        assert report["file-size"] == size
        assert report["payload-offset"] == offset
        assert report["payload-size"] == (length or size - offset)

    device.write_bytes(images.image(sealed=images.seal(size)))
    error = info(device, status=3)["error"]
    assert error["code"] == "image-cut"
    assert f"is cut at byte {size}:" in error["message"]


# What libvirt says of the same images.


@pytest.fixture(scope="module")
def virsh():
    if not vsptest.may_mount():
        pytest.skip("needs root, for libvirt's embedded driver")
    if not shutil.which("virsh") or not list(pathlib.Path("/usr/lib").glob("**/libvirt_driver_qemu.so")):
        pytest.skip("needs virsh and libvirt's QEMU driver")
    # One for all, because it keeps what it found out about the emulator.
    root = tempfile.mkdtemp(prefix="vsptest.", dir="/var/tmp")
    etc = vsplibvirt.Etc(root)

    def call(*words, status=0):
        return run("virsh", "--quiet", "--connect", f"qemu:///embed?root={root}", *words, status=status)

    yield call
    etc.remove()
    vsptest.remove_tree(root)


# Whether libvirt 9.0 opens an image, and whether we do.
BOTH, NEITHER, LIBVIRT = (True, True), (False, False), (True, False)
CASES = {
    "plain": ({}, BOTH),
    "cookie": ({"cookie": images.COOKIE}, BOTH),
    "no-padding": ({"padding": 0}, BOTH),
    "big-endian": ({"order": ">", "cookie": images.COOKIE}, BOTH),
    "version-0": ({"version": 0}, BOTH),
    "version-1": ({"version": 1}, BOTH),
    "version-3": ({"version": 3}, NEITHER),
    "format-1": ({"fmt": 1}, BOTH),
    "reserved": ({"reserved": b"\1" * 16, "sealed": b"\1" * 40}, BOTH),
    "sealed": ({"sealed": images.seal(len(images.RAW))}, BOTH),
    "running-7": ({"running": 7}, BOTH),
    "payload-at-1m": ({"padding": (1 << 20) - 92 - len(xml()) - 1}, BOTH),
    "partial": ({"magic": images.PARTIAL}, NEITHER),
    "foreign": ({"magic": b"LibvirtQemudOops"}, NEITHER),
    "length-0": ({"data_len": 0}, NEITHER),
    "length-beyond": ({"data_len": 100000}, NEITHER),
    # Nothing to restore, which libvirt does not look at here.
    "no-payload": ({"payload": b""}, LIBVIRT),
    "seal-cut": ({"sealed": images.seal(len(images.RAW) + 1)}, LIBVIRT),
}


@pytest.mark.parametrize("name", CASES)
def test_same_verdict(virsh, folder, name):
    arguments, (libvirt, ours) = CASES[name]
    path = folder / "image"
    path.write_bytes(images.image(xml=xml(), **arguments))

    shown = virsh("save-image-dumpxml", path, status=None)
    assert (shown.returncode == 0) is libvirt, shown.stderr
    report = info(path, status=None)
    assert report["ok"] is ours
    if ours:
        assert report["domain-name"] == re.search("<name>(.*)</name>", shown.stdout).group(1)


@pytest.mark.parametrize("order", "<>")
def test_libvirt_edits_a_sealed_image(virsh, folder, order):
    """An edit moves the cookie and sets the run state. Seal and payload stay, and stay valid."""
    path = folder / "image"
    digest = bytes(range(16))
    sealed = images.seal(len(images.RAW), digest)
    path.write_bytes(
        images.image(
            order=order, xml=xml(), cookie=images.COOKIE, padding=65536, sealed=sealed, running=0
        )
    )
    before = info(path)

    edited = folder / "edited.xml"
    text = virsh("save-image-dumpxml", path).stdout
    edited.write_text(text.replace("</name>", "</name><title>" + "x" * 1000 + "</title>", 1))
    virsh("save-image-define", path, edited, "--running")

    after = info(path)
    assert "x" * 1000 in virsh("save-image-dumpxml", path).stdout
    assert after["was-running"] is True and before["was-running"] is False
    assert after["xml-size"] > before["xml-size"] + 1000
    assert after["seal"] == "valid"
    assert after["notices"] == []
    for key in ["file-size", "payload-offset", "payload-size", "payload-digest", "domain-uuid"]:
        assert after[key] == before[key], key
    data = path.read_bytes()
    assert data[0x34:0x5C] == sealed
    assert data.endswith(images.RAW)


def test_record_survives_an_edit(virsh, folder):
    """libvirt takes our metadata for what it is, and gives it back."""
    args = "".join(f"<v:arg>{word}</v:arg>" for word in ["qemu", "-name", "a  b", "&lt;&amp;"])
    record = (
        f"<metadata><v:qemu xmlns:v='{images.NAMESPACE}'>{args}<v:arg/>"
        f"<v:arg encoding='base64'>YQpi</v:arg></v:qemu></metadata>"
    )
    path = folder / "image"
    path.write_bytes(images.image(xml=xml().replace(b"<os>", record.encode() + b"<os>"), padding=65536))
    command = ["qemu", "-name", "a  b", "<&", "", "a\nb"]
    assert info(path)["recorded-command"] == command

    edited = folder / "edited.xml"
    edited.write_text(virsh("save-image-dumpxml", path).stdout)
    virsh("save-image-define", path, edited, "--paused")
    report = info(path)
    assert report["was-running"] is False
    assert report["recorded-command"] == command


def test_numbers_of_the_example(folder):
    """The header that vmspool-save-image(5) takes apart."""
    numbers = bytes.fromhex("02000000 5c050100 01000000 00000000 ec030000")
    text = xml() + b" " * (1003 - len(xml()))
    cookie = b"<cookie>" + b" " * (367 - 17) + b"</cookie>"
    data = images.COMPLETE + numbers + bytes(56) + text + b"\0" + cookie + b"\0" + bytes(65536)
    path = folder / "image"
    path.write_bytes(data + images.RAW)
    report = info(path)
    assert struct.unpack("<I", numbers[4:8])[0] == report["data-size"] == 66908
    assert (report["xml-offset"], report["xml-size"]) == (92, 1004)
    assert (report["cookie-offset"], report["cookie-size"]) == (1096, 368)
    assert (report["padding-offset"], report["padding-size"]) == (1464, 65536)
    assert (report["payload-offset"], report["payload-size"]) == (67000, len(images.RAW))


@pytest.mark.parametrize("order", "<>")
def test_libvirt_reads_what_we_edit(virsh, folder, order):
    """And edits it again."""
    path = folder / "image"
    path.write_bytes(images.image(order=order, xml=xml(), cookie=images.COOKIE, padding=65536))
    longer = xml().replace(b"</name>", b"</name><title>" + b"x" * 30000 + b"</title>", 1)
    for text, state in [(longer, "--paused"), (xml(), "--running"), (longer, "--running")]:
        edited = folder / "edited.xml"
        edited.write_bytes(text)
        vmspool("xml", "replace", state, path, edited)
        shown = virsh("save-image-dumpxml", path).stdout
        assert (b"x" * 30000 in text) is ("x" * 30000 in shown)
        virsh("save-image-define", path, edited, state)
        report = info(path)
        assert report["notices"] == []
        assert report["was-running"] is (state == "--running")
        assert path.read_bytes().endswith(images.RAW)


def test_libvirt_takes_what_we_convert(virsh, folder):
    payload = images.RAW + b"\0\x06\0\0\0\2{}"
    path = folder / "image"
    path.write_bytes(images.image(order=">", xml=xml(), cookie=images.COOKIE, padding=0, payload=payload))
    before = virsh("save-image-dumpxml", path).stdout
    vmspool("convert", path, path)
    assert virsh("save-image-dumpxml", path).stdout == before
    edited = folder / "edited.xml"
    edited.write_text(before.replace("</name>", "</name><title>" + "x" * 30000 + "</title>", 1))
    virsh("save-image-define", path, edited)
    vmspool("verify", path)
