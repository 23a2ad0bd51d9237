# test_faults: what goes wrong in the middle, and what the VM, the file and the user get then
#
# Always: the tool ends, with the true cause in one sentence and the right status; the VM is back in
# the state it had; no file and no process is left. The last is checked after each test by conftest.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import pathlib
import signal
import subprocess

import pytest

import vsptest
from vsptest import MIB, last_json, vmspool, vmspool_end, vmspool_start


# What somebody who pressed Ctrl-C bears, in seconds, while QEMU answers nothing: less than the time that any
# command of QEMU's is given elsewhere.
PATIENCE = 25


def sentence(done):
    """The one that says why, out of what a tool that failed has written."""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("vmspool: note: ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("vmspool: ")
    return lines[0]


@pytest.fixture
def slow_guest(guest, folder):
    """A VM whose save or dump gets stuck in the middle, and what tells that it is there."""
    slow = vsptest.Slow(folder)
    vm = guest(start=False)
    vm.start(environment=slow.environment)
    vm.console.wait_passes(1)
    vm.slow = slow
    return vm


def start_save(vm, target, *words):
    """A save that has come to its middle."""
    process = vmspool_start("save", "--qmp", vm.path, *words, target)
    vm.slow.wait_middle()
    return process


def saved_image(vm, image):
    """Saves the VM, so that there is something to restore."""
    vmspool("save", "--qmp", vm.path, "--bypass-cache", image)
    vm.next_life()
    return image


# Save


@pytest.mark.parametrize("way", [[], ["--bypass-cache"]], ids=["default", "direct"])
@pytest.mark.parametrize("size", [1, 4, 16, 64])
def test_save_disk_full(guest, storage, size, way):
    vm = guest()
    target = storage.tmpfs(f"{size}M") / "image"
    failed = vmspool("save", "--qmp", vm.path, *way, target, status=1)
    why = sentence(failed).lower()
    assert "no space" in why
    assert str(target) in why
    assert list(target.parent.iterdir()) == []
    vm.runs()


@pytest.mark.parametrize("way", [[], ["--bypass-cache"]], ids=["default", "direct"])
@pytest.mark.parametrize("kind,size", [("ext4", 64), ("xfs", 320)])
def test_save_disk_full_on_a_disk(guest, storage, kind, size, way):
    """A file system with reservations and delayed allocation: some find out only at the sync."""
    vm = guest(memory=512)
    target = storage.filesystem(kind, size * MIB) / "image"
    before = sorted(os.listdir(target.parent))
    failed = vmspool("save", "--qmp", vm.path, *way, target, status=1)
    assert "no space" in sentence(failed).lower()
    assert sorted(os.listdir(target.parent)) == before
    vm.runs()


def test_save_device_too_small(guest, storage):
    vm = guest()
    device = storage.loop(32 * MIB, sector=4096)
    failed = vmspool("save", "--qmp", vm.path, "--bypass-cache", device, status=1)
    assert "no space" in sentence(failed).lower()
    vm.runs()
    # Nobody may take what is on it now for an image.
    vmspool("restore", device, "--", "false", status=3)


def test_save_file_size_limit(guest, folder):
    vm = guest()
    failed = vmspool(
        *("save", "--qmp", vm.path, "--bypass-cache", folder / "image"),
        status=1,
        preexec_fn=lambda: limit_file_size(16 * MIB),
    )
    assert "File too large" in sentence(failed)
    assert not (folder / "image").exists()
    vm.runs()


def limit_file_size(size):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("state", ["running", "paused"])
def test_save_helper_killed(slow_guest, folder, state):
    vm = slow_guest
    if state == "paused":
        vm.qmp("stop")
    process = start_save(vm, folder / "image")
    os.kill(vsptest.helper_of(process), signal.SIGKILL)
    failed = vmspool_end(process, status=1)
    assert "signal 9" in sentence(failed)
    assert not (folder / "image").exists()
    if state == "paused":
        assert vm.qmp("query-status")["running"] is False
        vm.qmp("cont")
    vm.runs()


def test_save_helper_stopped_and_killed(slow_guest, folder):
    vm = slow_guest
    process = start_save(vm, folder / "image")
    helper = vsptest.helper_of(process)
    os.kill(helper, signal.SIGSTOP)
    os.kill(helper, signal.SIGKILL)
    assert "signal 9" in sentence(vmspool_end(process, status=1))
    assert not (folder / "image").exists()
    vm.runs()


def test_save_qemu_killed(slow_guest, folder):
    """The VM is lost whatever we do; what is left of it is no image."""
    vm = slow_guest
    process = start_save(vm, folder / "image")
    vm.process.kill()
    failed = vmspool_end(process, status=1)
    assert "QEMU" in sentence(failed)
    assert not (folder / "image").exists()
    vm.gone()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_save_interrupted(slow_guest, folder, number):
    vm = slow_guest
    process = start_save(vm, folder / "image", "--bypass-cache")
    process.send_signal(number)
    failed = vmspool_end(process, status=1)
    assert "cancel" in sentence(failed)
    assert not (folder / "image").exists()
    vm.runs()


def test_save_interrupted_twice(slow_guest, folder):
    vm = slow_guest
    process = start_save(vm, folder / "image")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    sentence(vmspool_end(process, status=1))
    assert not (folder / "image").exists()
    vm.runs()


def test_save_interrupted_with_a_stopped_helper(slow_guest, folder):
    """A helper that hangs, as on a dead disk, does not keep the VM."""
    vm = slow_guest
    process = start_save(vm, folder / "image")
    os.kill(vsptest.helper_of(process), signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    sentence(vmspool_end(process, status=1))
    assert not (folder / "image").exists()
    vm.runs()


def test_save_interrupted_paused(slow_guest, folder):
    vm = slow_guest
    vm.qmp("stop")
    process = start_save(vm, folder / "image")
    process.send_signal(signal.SIGINT)
    sentence(vmspool_end(process, status=1))
    assert vm.qmp("query-status")["running"] is False
    vm.qmp("cont")
    vm.runs()


def test_save_interrupted_keeps_the_old_file(slow_guest, folder):
    vm = slow_guest
    image = folder / "image"
    image.write_bytes(b"")
    process = start_save(vm, image)
    process.send_signal(signal.SIGINT)
    vmspool_end(process, status=1)
    # It was there before: it is not ours to remove.
    assert image.exists()
    vm.runs()


def test_save_again_after_a_failure(slow_guest, folder):
    """Nothing of the first try is in the way of a second, nor of a dump."""
    vm = slow_guest
    process = start_save(vm, folder / "image")
    process.send_signal(signal.SIGINT)
    vmspool_end(process, status=1)
    vm.slow.over()
    vm.runs()
    vmspool("dump", "--qmp", vm.path, folder / "core")
    vm.runs()
    vsptest.verify_core(folder / "core", vm)
    vmspool("restore", saved_image(vm, folder / "image"), "--", *vm.command())
    vm.attach()
    vm.runs()


def test_save_cancelled_by_another(slow_guest, folder):
    vm = slow_guest
    process = start_save(vm, folder / "image")
    vm.qmp("migrate_cancel")
    sentence(vmspool_end(process, status=1))
    assert not (folder / "image").exists()
    vm.runs()


def test_save_tool_killed(slow_guest, folder):
    """Nobody is left to clean up. The helper ends, and what it wrote is known as incomplete."""
    vm = slow_guest
    image = folder / "image"
    process = start_save(vm, image)
    helper = vsptest.helper_of(process)
    process.kill()
    process.communicate()
    vsptest.wait_for(lambda: not vsptest.alive(helper), "the helper to end")
    assert last_json(vmspool("info", "--json", image, status=None).stdout)["complete"] is False
    failed = vmspool("restore", image, "--", "false", status=3)
    assert "did not finish" in sentence(failed)
    vsptest.wait_for(
        lambda: vm.qmp("query-migrate").get("status") != "active", "QEMU to see that nobody reads"
    )
    vm.qmp("cont")
    vm.runs()


# Restore


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_restore_interrupted(guest, folder, number):
    vm = guest()
    image = saved_image(vm, folder / "image")
    before = image.read_bytes()
    slow = vsptest.Slow(folder)
    process = vmspool_start("restore", image, "--", *slow.words(), *vm.command())
    slow.wait_middle()
    process.send_signal(number)
    sentence(vmspool_end(process, status=1, limit=PATIENCE))
    vsptest.wait_for(lambda: not vsptest.leftovers(), "QEMU to be ended")

    # No harm is done: it can be had again, from the same image.
    assert image.read_bytes() == before
    vm.own_path.unlink(missing_ok=True)
    vmspool("restore", image, "--", *vm.command())
    vm.attach()
    vm.runs()


def test_restore_interrupted_by_monitor(guest, folder):
    """A QEMU that somebody else started gets no more, and is not ended by us."""
    vm = guest()
    image = saved_image(vm, folder / "image")
    slow = vsptest.Slow(folder)
    vm.start("-incoming", "defer", environment=slow.environment)
    process = vmspool_start("restore", image, "--qmp", vm.path)
    slow.wait_middle()
    process.send_signal(signal.SIGINT)
    sentence(vmspool_end(process, status=1, limit=PATIENCE))
    # It may end by itself: its state has been cut.
    vm.process.kill()
    vm.gone()


def test_restore_helper_killed(guest, folder):
    vm = guest()
    image = saved_image(vm, folder / "image")
    slow = vsptest.Slow(folder)
    process = vmspool_start("restore", image, "--", *slow.words(), *vm.command())
    slow.wait_middle()
    os.kill(vsptest.helper_of(process), signal.SIGKILL)
    assert "signal 9" in sentence(vmspool_end(process, status=1))


def test_restore_qemu_killed(guest, folder):
    vm = guest()
    image = saved_image(vm, folder / "image")
    slow = vsptest.Slow(folder)
    vm.start("-incoming", "defer", environment=slow.environment)
    process = vmspool_start("restore", image, "--qmp", vm.path)
    slow.wait_middle()
    vm.process.kill()
    assert "QEMU" in sentence(vmspool_end(process, status=1))
    vm.gone()


def test_restore_no_such_qemu(guest, folder):
    vm = guest()
    image = saved_image(vm, folder / "image")
    failed = vmspool("restore", image, "--", "/no/such/qemu", "-m", "128", status=1)
    assert "/no/such/qemu" in sentence(failed)
    assert "No such file" in failed.stderr


def test_restore_qemu_ends_at_once(guest, folder):
    vm = guest()
    image = saved_image(vm, folder / "image")
    failed = vmspool("restore", image, "--", *vm.command("-no-such-option"), status=1)
    # What QEMU itself says is the reason.
    assert "no-such-option" in sentence(failed)
    sentence(vmspool("restore", image, "--", "false", status=1))


def test_restore_into_less_memory(guest, folder):
    vm = guest()
    image = saved_image(vm, folder / "image")
    vm.memory //= 2
    failed = vmspool("restore", image, "--", *vm.command(), status=1)
    assert "memory" in failed.stderr


def test_restore_into_a_running_vm(guest, folder):
    vm, other = guest(), guest()
    image = saved_image(vm, folder / "image")
    failed = vmspool("restore", image, "--qmp", other.path, status=1)
    assert "-incoming" in sentence(failed)
    other.runs()


@pytest.mark.parametrize("left", [0, 1, 91, 92, 4096, 70000, 8 * MIB, -1])
def test_restore_cut_image(guest, folder, left):
    """Told before anything is started."""
    vm = guest()
    image = saved_image(vm, folder / "image")
    os.truncate(image, left if left >= 0 else image.stat().st_size + left)
    marker = folder / "started"
    failed = vmspool("restore", image, "--", "touch", marker, status=3)
    assert str(image) in sentence(failed)
    assert not marker.exists()


def test_restore_foreign_file(folder):
    path = folder / "file"
    path.write_bytes(b"nothing of the kind" * 1000)
    sentence(vmspool("restore", path, "--", "false", status=3))
    sentence(vmspool("restore", folder, "--", "false", status=3))
    sentence(vmspool("restore", folder / "none", "--", "false", status=1))


# Dump


@pytest.mark.parametrize("size", [1, 16])
def test_dump_disk_full(guest, storage, size):
    vm = guest()
    target = storage.tmpfs(f"{size}M") / "core"
    failed = vmspool("dump", "--qmp", vm.path, target, status=1)
    assert "no space" in sentence(failed).lower()
    assert list(target.parent.iterdir()) == []
    vm.runs()


@pytest.mark.parametrize("state", ["running", "paused"])
def test_dump_helper_killed(slow_guest, folder, state):
    vm = slow_guest
    if state == "paused":
        vm.qmp("stop")
    process = vmspool_start("dump", "--qmp", vm.path, folder / "core")
    vm.slow.wait_middle()
    os.kill(vsptest.helper_of(process), signal.SIGKILL)
    assert "signal 9" in sentence(vmspool_end(process, status=1))
    assert not (folder / "core").exists()
    if state == "paused":
        vm.stands()
    else:
        vm.runs()


def test_dump_interrupted(slow_guest, folder):
    vm = slow_guest
    process = vmspool_start("dump", "--qmp", vm.path, folder / "core")
    vm.slow.wait_middle()
    process.send_signal(signal.SIGINT)
    sentence(vmspool_end(process, status=1))
    assert not (folder / "core").exists()
    vm.runs()


def test_dump_qemu_killed(slow_guest, folder):
    vm = slow_guest
    process = vmspool_start("dump", "--qmp", vm.path, folder / "core")
    vm.slow.wait_middle()
    vm.process.kill()
    assert "QEMU" in sentence(vmspool_end(process, status=1))
    assert not (folder / "core").exists()
    vm.gone()


# Copy


def test_copy_reader_gone(folder):
    (folder / "file").write_bytes(bytes(64 * MIB))
    process = vmspool_start("copy", folder / "file", "-")
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=vsptest.LIMIT)
    assert process.returncode == 1
    assert "closed" in errors


def test_copy_interrupted(folder):
    """Waiting for bytes that do not come."""
    out = folder / "out"
    source, sink = os.pipe()
    process = vmspool_start("copy", "-", out, stdin=source)
    os.close(source)
    os.write(sink, b"x" * 4096)
    vsptest.helper_of(process)
    process.send_signal(signal.SIGINT)
    sentence(vmspool_end(process, status=1))
    os.close(sink)
    assert not out.exists()


def test_copy_through(folder):
    data = os.urandom(5 * MIB + 3)
    (folder / "in").write_bytes(data)
    vmspool("copy", "--bypass-cache", folder / "in", folder / "out")
    assert (folder / "out").read_bytes() == data
    with open(folder / "in", "rb") as file:
        vmspool("copy", "-", folder / "again", stdin=file)
    assert (folder / "again").read_bytes() == data
    done = subprocess.run(
        [vsptest.TOOL, "copy", folder / "in", "-"],
        env=vsptest.tool_environment(),
        stdout=subprocess.PIPE,
        timeout=vsptest.LIMIT,
        check=True,
    )
    assert done.stdout == data
    failed = vmspool("copy", folder / "in", folder / "out", status=1)
    assert str(folder / "out") in sentence(failed)
    assert pathlib.Path(folder / "out").read_bytes() == data
