# sweeps: one quantity against two others: the transport by buffer and message, the ring by count and size
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import fcntl
import os

from rounds import RunError, say
from setting import MIB
from streams import drive

KIB = 1024
TRANSPORTS = ["pipe", "socket"]
TRANSPORT_BUFFERS = [64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 2 * MIB, 4 * MIB]
MESSAGES = [128, KIB, 4 * KIB, 64 * KIB, 256 * KIB, MIB, 2 * MIB]
RING_BUFFERS = [2, 3, 4, 6, 8, 16]
RING_SIZES = [MIB, 2 * MIB, 4 * MIB, 8 * MIB]

# Small messages are slow: as many of them as take about as long as the others do.
MOST_MESSAGES = 1 << 18

# The reader takes all there is, up to this at once.
READ = 2 * MIB


def _round(cells, number, notice):
    turn = number % len(cells)
    for cell in cells[turn:] + cells[:turn]:
        try:
            cell["samples"].append(cell["run"]())
        except RunError as error:
            notice(f"sweep: {cell['what']} is left out: {error}")
            cell["samples"] = None
    return [cell for cell in cells if cell["samples"] is not None]


def _measure(cells, rounds, notice):
    """Each cell once in each round; the first is not counted."""
    for number in range(rounds + 1):
        cells = _round(cells, number, notice)
        if number == 0:
            for cell in cells:
                cell["samples"] = []
    for cell in cells:
        del cell["run"], cell["what"]
    return cells


def _buffers(kind, setting):
    """Those that this host grants."""
    buffers = TRANSPORT_BUFFERS if not setting.quick else [64 * KIB, MIB]
    if kind == "socket":
        return buffers
    granted = []
    read, write = os.pipe()
    for buffer in buffers:
        try:
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, buffer)
            granted.append(buffer)
        except PermissionError:
            setting.notice(f"a pipe of {buffer // KIB} KiB is refused here (fs.pipe-max-size)")
    os.close(read)
    os.close(write)
    return granted


def transport(setting):
    """A writer and a reader and nothing else: what the kernel's pipes and socket pairs can carry."""
    say("sweep-transport: transport, buffer size, message size")
    cells = []
    for kind in TRANSPORTS:
        for buffer in _buffers(kind, setting):
            for message in MESSAGES if not setting.quick else [4 * KIB, MIB]:
                size = min(setting.bytes, message * MOST_MESSAGES)

                def run(kind=kind, buffer=buffer, message=message, size=size):
                    return drive(
                        *(setting, setting.helperdrive, "--file", "/dev/null"),
                        *("--bytes", size, "--pattern", message, "--transport", kind, "--buffer", buffer),
                        *("--", setting.helperdrive, "--sink", READ),
                    )

                cells.append(
                    {
                        **{"transport": kind, "buffer": buffer, "message": message, "samples": []},
                        **{"run": run, "what": f"{kind}, buffer {buffer}, message {message}"},
                    }
                )
    return _measure(cells, setting.rounds, setting.notice)


def ring(setting, source):
    """The helper's ring, over a socket pair of 2 MiB: buffers and their size, direct save and restore."""
    say("sweep-ring: buffers, buffer size")
    path = setting.folder / "ring"
    cells = []
    for work in ["save", "restore"]:
        for buffers in RING_BUFFERS if not setting.quick else [2, 4]:
            for size in RING_SIZES if not setting.quick else [MIB]:
                words = ["--bytes", setting.bytes, "--file", path]
                if work == "restore":
                    words = ["--restore", "--page-cache", "cold", "--file", source]

                def run(words=words, buffers=buffers, size=size):
                    return drive(
                        *(setting, setting.helperdrive, *words, "--direct"),
                        *("--transport", "socket", "--buffer", 2 * MIB, "--", setting.helper),
                        *("--buffers", buffers, "--buffer-size", size, "it", "@F"),
                    )

                cells.append(
                    {
                        **{"work": work, "buffers": buffers, "size": size, "samples": []},
                        **{"run": run, "what": f"{work}, {buffers} buffers of {size}"},
                    }
                )
    found = _measure(cells, setting.rounds, setting.notice)
    if path.exists():
        path.unlink()
    return found
