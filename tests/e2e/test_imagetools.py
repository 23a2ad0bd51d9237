# test_imagetools: images that were sealed, edited and written anew, restored, and on block devices
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import pytest

import vsptest
from test_images import images
from vsptest import MIB, last_json, vmspool

ALL = ["structure", "start", "end", "length", "digest"]


def tool(command, *words, status=0):
    return last_json(vmspool(command, "--json", *words, status=status).stdout)


@pytest.fixture
def image(guest, folder):
    """A saved guest: the image, and the guest."""
    one = guest()
    path = folder / "image"
    vmspool("save", "--qmp", one.path, path)
    return path, one.next_life()


def restore(path, guest):
    vmspool("restore", path, "--", *guest.command())
    guest.attach()
    guest.runs()


def test_whole_life(image):
    """What QEMU wrote ends as `verify` expects, and what the tools made of it QEMU takes."""
    path, guest = image
    assert tool("verify", path)["checked"] == ALL
    digest = tool("info", path)["payload-digest"]

    # A save that was interrupted before the mark.
    with open(path, "r+b") as file:
        file.write(images.PARTIAL)
        file.seek(0x34)
        file.write(bytes(40))
    assert "vmspool seal" in tool("verify", path, status=3)["error"]["message"]
    assert tool("seal", path)["payload-digest"] == digest

    edited = path.with_name("edited.xml")
    text = vmspool("xml", "show", path).stdout
    edited.write_text(text.replace("<vcpu>", f"<title>{'x' * 100000}</title><vcpu>", 1))
    vmspool("xml", "replace", path, edited, status=1)
    tool("convert", "--xml-room=1M", path, path)
    tool("xml", "replace", path, edited)
    assert tool("verify", path)["checked"] == ALL
    assert tool("info", path)["payload-digest"] == digest
    restore(path, guest)


def test_cut_without_a_seal(image):
    """As libvirt's images are: the end of QEMU's stream is missed."""
    path, _ = image
    with open(path, "r+b") as file:
        file.seek(0x34)
        file.write(bytes(40))
    assert tool("verify", path)["checked"] == ALL[:3]
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 1)
    assert tool("verify", path, status=3)["error"]["code"] == "image-cut"


def test_block_device(storage, folder):
    """The payload ends before the device does."""
    payload = images.RAW + bytes(3 * MIB) + b"\0\x06\0\0\0\2{}"
    source = folder / "source"
    source.write_bytes(images.image(payload=payload))
    device = storage.loop(16 * MIB, 512)
    out = folder / "out"

    tool("convert", source, device)
    assert tool("verify", device)["checked"] == ALL
    tool("convert", device, out)
    assert tool("verify", out)["checked"] == ALL
    assert out.read_bytes().endswith(payload)
    assert tool("extract", "--payload", device, folder / "payload")["ok"] is True
    assert (folder / "payload").read_bytes() == payload

    # An edit is done in place only, and so only on request.
    edited = folder / "edited.xml"
    edited.write_bytes(images.domain(inside="<title>" + "x" * 3000 + "</title>"))
    vmspool("xml", "replace", device, edited, status=1)
    tool("xml", "replace", "--in-place", device, edited)
    assert tool("verify", device)["checked"] == ALL
    assert tool("convert", device, device, status=1)["error"]["code"] == "invalid-argument"
