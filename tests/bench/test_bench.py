# test_bench: the benchmark runs, tells what it left out, and does not take a wrong result for a good one
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["VSPTEST_BUILD"])
HELPERDRIVE = BUILD / "bench/helperdrive"
WRAPDRIVE = BUILD / "bench/wrapdrive"
HELPER = BUILD / "src/iohelper/vmspool_iohelper"
RUN = SOURCE / "bench/run"
LIMIT = 500
OURS = {"drop-in", "library", "dontcache", "paced", "cached", "socket", "vmspool"}

sys.path.insert(0, str(SOURCE / "bench/lib"))
import rounds  # noqa: E402
import report  # noqa: E402
import targets  # noqa: E402


@pytest.fixture
def folder():
    """On a disk: O_DIRECT is asked for."""
    with tempfile.TemporaryDirectory(prefix="vsptest.", dir="/var/tmp") as path:
        yield pathlib.Path(path)


def drive(program, *words):
    line = [str(word) for word in (program, *words)]
    environment = {**os.environ, "VMSPOOL_IOHELPER": str(HELPER)}
    done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] == (done.returncode == 0)
    return found


def test_quick(folder):
    """All of it with tiny sizes."""
    out = folder / "result.json"
    charts = folder / "charts"
    command = [RUN, "--quick", "--sweep-ring", "--build", BUILD, "--dir", folder, "--json", out, "--charts", charts]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())

    left_out = [notice for notice in result["notices"] if "is left out: " in notice]
    assert not [notice for notice in left_out if "vmspool" in notice or "libvirt_iohelper" in notice]
    for workload in result["workloads"]:
        ours = [entry for entry in workload["entries"] if entry["name"] in OURS]
        assert ours, workload["name"]
        for entry in workload["entries"]:
            assert len(entry["samples"]) in (1, 5)
            for sample in entry["samples"]:
                assert sample["seconds"] > 0 and sample["bytes"] > 0
    for sweep in ("transport", "ring"):
        assert result["sweeps"][sweep] and all(cell["samples"] for cell in result["sweeps"][sweep])
    assert result["quick"] and "No measurement" in done.stdout

    drawn = list(charts.iterdir()) if charts.exists() else []
    assert drawn or any("matplotlib" in notice for notice in result["notices"])
    assert {path.name for path in folder.iterdir()} <= {"result.json", "charts"}

    again = subprocess.run([RUN, "--report", out], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert again.stdout in done.stdout


@pytest.mark.parametrize("direct", [[], ["--direct"]], ids=["cached", "direct"])
@pytest.mark.parametrize("pattern", ["qemu", "1000", "1M"])
@pytest.mark.parametrize("transport", ["pipe", "socket"])
def test_what_is_moved(folder, direct, pattern, transport):
    """Both drivers and the helper: what arrives is what was sent, at a length that no block divides."""
    words = ["--file", folder / "file", "--pattern", pattern, "--verify"]
    helper = [*direct, "--transport", transport, "--", HELPER, "it", "@F"]
    size = ["--bytes", 3000001]
    saved = drive(HELPERDRIVE, *words, *size, *helper)
    assert saved["bytes"] == (folder / "file").stat().st_size
    restored = drive(HELPERDRIVE, *words, "--restore", "--page-cache", "cold", *helper)
    assert restored["bytes"] == saved["bytes"]
    assert drive(WRAPDRIVE, *words, "--transport", transport, *size)["bytes"] == saved["bytes"]
    wrapped = drive(WRAPDRIVE, *words, "--restore", "--page-cache", "hot", "--transport", transport)
    assert wrapped["bytes"] == saved["bytes"]
    assert wrapped["resident_before"] == 1


@pytest.mark.parametrize(
    "program, error",
    [
        (["dd", "conv=swab", "status=none"], "the file is not what was sent"),
        (["head", "-c", "1000"], "the stream broke"),
        (["sh", "-c", "cat; echo"], "the file is not as long as the stream"),
        (["sh", "-c", "cat; exit 1"], "the program failed"),
        (["/no/such/program"], "cannot run the program"),
    ],
)
def test_wrong_saves(folder, program, error):
    words = ["--file", folder / "file", "--bytes", "3M", "--verify"]
    assert drive(HELPERDRIVE, *words, "--", *program)["error"].startswith(error)


@pytest.mark.parametrize(
    "program, error",
    [
        (["dd", "conv=swab", "status=none"], "what arrived is not what is in the file"),
        (["head", "-c", "1000"], "the stream is not as long as the file"),
    ],
)
def test_wrong_restores(folder, program, error):
    subprocess.run([HELPERDRIVE, "--file", folder / "file", "--bytes", "3M", "--make"], check=True, timeout=LIMIT)
    words = ["--file", folder / "file", "--restore", "--verify"]
    assert drive(HELPERDRIVE, *words, "--", *program)["error"].startswith(error)


def test_the_sync_is_counted(folder):
    """A program that does not sync is compared with its data as durable: pages are clean in the end."""
    found = drive(HELPERDRIVE, "--file", folder / "file", "--bytes", "32M", "--", "cat")
    assert 0 < found["sync"] < found["seconds"]


def test_memory_is_the_programs_own(folder):
    """Not what the driver has: its payload alone would be 64 MiB."""
    found = drive(HELPERDRIVE, "--file", folder / "file", "--bytes", "64M", "--", "cat")
    assert 0 < found["peak_kib"] < 16384
    found = drive(WRAPDRIVE, "--file", folder / "file", "--bytes", "64M", "--buffers", 2, "--buffer-size", "1M")
    assert 2048 < found["peak_kib"] < 32768


def sample(seconds, size=1 << 30, **more):
    return {"seconds": seconds, "bytes": size, **more}


def workload(name, time=False, **entries):
    return {
        **{"name": name, "title": name, "baseline": "stock", "time": time},
        "entries": [
            {"name": entry.replace("_", "-"), "title": entry, "samples": samples} for entry, samples in entries.items()
        ],
    }


def test_ratios_are_of_one_round():
    """The machine was twice as slow in the second round, for both: the ratio is the same in all."""
    result = workload("save-direct", stock=[sample(2), sample(4), sample(2)], library=[sample(1), sample(2), sample(1)])
    ratio = rounds.ratio(result, "library")
    assert (ratio.median, ratio.least, ratio.most) == (2, 2, 2)
    assert rounds.ratio(result, "library", time=True).median == 0.5
    assert rounds.ratio(result, "nobody") is None


def test_targets():
    """Missed ones come first, unmeasured ones last, and none is called met for want of a figure."""
    result = workload("save-direct", stock=[sample(2)], library=[sample(1)], drop_in=[sample(1.9)], fio_fresh=[sample(0.95)])
    found = targets.evaluate([result])
    assert [found[0].work, found[0].met] == ["direct save, QEMU's pattern, in the helper's place", False]
    assert {target.work for target in found if target.met} == {
        "direct save, QEMU's pattern, libvmspool",
        "the same, of what fio reaches writing a new file",
    }
    assert found[-1].met is None
    slow = workload("qemu-save-direct", time=True, stock=[sample(3)], vmspool=[sample(1)], qemu_fd=[sample(0.5)])
    by_work = {target.work: target for target in targets.evaluate([slow])}
    assert by_work["a real QEMU, direct save, vmspool save"].value == 3
    assert by_work["a real QEMU: vmspool save to QEMU writing the plain file, synced"].met is False


def marked(path, name):
    text = (SOURCE / path).read_text(encoding="utf-8")
    return text.partition(report.BEGIN.format(name=name))[2].partition(report.END.format(name=name))[0]


def test_readme_quotes_the_benchmark():
    """No figure in the README that was not printed by the run that docs/benchmarks.md shows."""
    quoted = marked("README.md", "summary").strip()
    assert quoted and quoted in marked("docs/benchmarks.md", "result")


def test_few_rounds_are_refused():
    done = subprocess.run([RUN, "--rounds", "4"], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 2 and "no measurement" in done.stderr
