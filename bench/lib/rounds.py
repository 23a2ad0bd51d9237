# rounds: alternating runs of what is compared, and what comes of them
#
# All entries of a workload run once in each round, one after the other, so that whatever changes on the
# machine meanwhile meets all of them. Who begins changes from round to round. A round more comes first: it
# warms up, compares what arrived with what was sent, and is not counted.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import dataclasses
import statistics
import sys
import typing

GIB = 1 << 30


class RunError(Exception):
    """A run that did not end well; says why."""


@dataclasses.dataclass
class Entry:
    """Something that does the work. run(verify) returns a sample: seconds, bytes, and what else is known."""

    name: str
    title: str
    run: typing.Callable


@dataclasses.dataclass
class Workload:
    name: str
    title: str
    entries: list
    baseline: str = "stock"
    time: bool = False  # what counts is the time, not bytes per second
    repeat: int = 1  # samples in a round
    close: typing.Callable = lambda: None


def say(text):
    """Progress, for who waits."""
    print(text, file=sys.stderr, flush=True)


def measure(workload, rounds, notice):
    """Returns the workload's part of the result: its entries with their samples, in rounds."""
    alive = list(workload.entries)
    samples = {entry.name: [] for entry in alive}

    def attempt(entry, verify):
        try:
            return entry.run(verify)
        except RunError as error:
            notice(f"{workload.name}: {entry.title} is left out: {error}")
            alive.remove(entry)
            return None

    say(f"{workload.name}: {workload.title}")
    for entry in list(alive):
        attempt(entry, True)
    for number in range(rounds):
        turn = number % max(len(alive), 1)
        for entry in alive[turn:] + alive[:turn]:
            for _ in range(workload.repeat):
                if entry not in alive:
                    break
                sample = attempt(entry, False)
                if sample:
                    samples[entry.name].append(sample)
    workload.close()
    return {
        "name": workload.name,
        "title": workload.title,
        "baseline": workload.baseline,
        "time": workload.time,
        "entries": [
            {"name": entry.name, "title": entry.title, "samples": samples[entry.name]} for entry in alive
        ],
    }


# Figures


@dataclasses.dataclass
class Spread:
    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values):
        values = list(values)
        return cls(statistics.median(values), min(values), max(values)) if values else None


def entry_of(result, name):
    for entry in result["entries"]:
        if entry["name"] == name and entry["samples"]:
            return entry
    return None


def rate(sample):
    """MB/s, of a million bytes."""
    return sample["bytes"] / sample["seconds"] / 1e6


def speed(entry):
    return Spread.of(rate(sample) for sample in entry["samples"])


def seconds(entry):
    return Spread.of(sample["seconds"] for sample in entry["samples"])


def ratio(result, name, baseline=None, time=False):
    """How one entry compares with another, sample by sample of the same round; None if one is missing."""
    one = entry_of(result, name)
    other = entry_of(result, baseline or result["baseline"])
    if not one or not other:
        return None
    pairs = zip(one["samples"], other["samples"])
    if time:
        return Spread.of(a["seconds"] / b["seconds"] for a, b in pairs)
    return Spread.of(rate(a) / rate(b) for a, b in pairs)


def cpu(sample):
    """Seconds of processor per GiB: of the program, not of who drives it. None if it is not known."""
    if "user" not in sample:
        return None
    return (sample["user"] + sample["system"]) * GIB / sample["bytes"]


def cpu_spread(entry):
    return Spread.of(value for value in map(cpu, entry["samples"]) if value is not None)


def cpu_ratio(result, name):
    one, other = entry_of(result, name), entry_of(result, result["baseline"])
    if not one or not other:
        return None
    pairs = [(cpu(a), cpu(b)) for a, b in zip(one["samples"], other["samples"])]
    return Spread.of(a / b for a, b in pairs if a is not None and b)


def peak(entry):
    """MiB, the most of all samples."""
    found = [sample["peak_kib"] / 1024 for sample in entry["samples"] if sample.get("peak_kib")]
    return max(found) if found else None


def chosen(entry):
    """What our helper chose: engine and cache mode. Empty for others."""
    words = []
    for sample in entry["samples"]:
        told = sample.get("statistics")
        word = f"{told['engine']}, {told['cache']}" if told and "engine" in told else None
        if word and word not in words:
            words.append(word)
    return " / ".join(words)
