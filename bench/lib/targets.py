# targets: what must be reached, and what was
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import dataclasses

import rounds


@dataclasses.dataclass
class Target:
    work: str
    want: float
    reached: object  # a Spread or a number, None if it was not measured
    unit: str = "×"
    most: bool = False  # at most, not at least

    @property
    def value(self):
        return self.reached.median if isinstance(self.reached, rounds.Spread) else self.reached

    @property
    def met(self):
        if self.value is None:
            return None
        return self.value <= self.want if self.most else self.value >= self.want


def evaluate(workloads):
    """All targets, those that were missed first, and those that were not measured last."""
    by_name = {result["name"]: result for result in workloads}
    nothing = {"entries": [], "baseline": "stock"}

    def result(name):
        return by_name.get(name, nothing)

    def ratio(workload, entry, baseline=None, time=False):
        return rounds.ratio(result(workload), entry, baseline, time)

    def slowness(workload, entry, baseline=None):
        """Time by time, the other way round: how many times as fast."""
        return ratio(workload, baseline or "stock", entry, time=True)

    peaks = [
        rounds.peak(entry)
        for found in workloads
        for entry in found["entries"]
        if entry["name"] in ("drop-in", "library") and rounds.peak(entry)
    ]
    startups = [ratio(f"startup-{kind}", "library", time=True) for kind in ("direct", "cached")]
    startups = [one for one in startups if one]
    targets = [
        Target("direct save, QEMU's pattern, libvmspool", 1.9, ratio("save-direct", "library")),
        Target("the same, of what fio reaches writing a new file", 0.9, ratio("save-direct", "library", "fio-fresh")),
        Target("direct save, QEMU's pattern, in the helper's place", 1.5, ratio("save-direct", "drop-in")),
        Target("cached save with the sync, libvmspool's default", 3, ratio("save-cached", "library")),
        Target("to /dev/null, QEMU's pattern, libvmspool", 2, ratio("null", "library")),
        Target("direct restore, libvmspool", 1.6, ratio("restore-direct", "library")),
        Target("hot restore, libvmspool", 2.5, ratio("restore-hot", "library")),
        Target("a real QEMU, direct save, vmspool save", 2, slowness("qemu-save-direct", "vmspool")),
        Target("a real QEMU, direct restore, vmspool restore", 1.5, slowness("qemu-restore-direct", "vmspool")),
        Target(
            "a real QEMU: vmspool save to QEMU writing the plain file, synced",
            1.0,
            slowness("qemu-save-direct", "vmspool", "qemu-fd"),
        ),
        Target(
            "processor seconds per GiB, direct save, libvmspool",
            0.7,
            rounds.cpu_ratio(result("save-direct"), "library"),
            most=True,
        ),
        Target(
            "time for a file of 1 MiB, libvmspool, the worse of direct and cached",
            0.8,
            max(startups, key=lambda one: one.median) if startups else None,
            most=True,
        ),
        Target("helper's memory", 48, max(peaks) if peaks else None, unit=" MiB", most=True),
    ]
    return sorted(targets, key=lambda target: {False: 0, True: 1, None: 2}[target.met])
