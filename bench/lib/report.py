# report: the result as tables, on the terminal and in the documentation alike
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import re

import rounds
import targets

BEGIN = "<!-- {name}: written by bench/run --markdown -->"
END = "<!-- end of {name} -->"


def number(value):
    """Three digits that count, no more."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(found, unit=""):
    if found is None:
        return ""
    return f"{number(found.median)}{unit} ({number(found.least)}–{number(found.most)})"


def size(count):
    for shift, word in ((20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count / (1 << shift):g} {word}"
    return f"{count} B"


def table(head, rows):
    """Markdown that can be read as it is. The first column is text."""
    rows = [head, *rows]
    # Columns in which nobody has anything are left out.
    keep = [i for i in range(len(head)) if any(row[i] for row in rows[1:])]
    rows = [[row[i] for i in keep] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(keep))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |" for row in rows]
    rule = ["-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines.insert(1, "| " + " | ".join(rule) + " |")
    return "\n".join(lines)


def workload(result):
    """Medians, least and most; ratios are to the baseline's sample of the same round."""
    time = result["time"]
    head = [
        *("", "ms" if time else "MB/s", "time, times" if time else "times as fast", "CPU s/GiB", "of it user"),
        *("peak MiB", "chosen"),
    ]
    rows = []
    for entry in result["entries"]:
        samples = entry["samples"]
        if not samples:
            continue
        if time:
            first = rounds.Spread.of(sample["seconds"] * 1000 for sample in samples)
        else:
            first = rounds.speed(entry)
        cpu = rounds.cpu_spread(entry)
        user = rounds.Spread.of(
            s["user"] * rounds.GIB / s["bytes"] for s in samples if "user" in s
        )
        peak = rounds.peak(entry)
        compared = entry["name"] != result["baseline"]
        rows.append(
            [
                entry["title"],
                spread(first),
                spread(rounds.ratio(result, entry["name"], time=time)) if compared else "1",
                f"{cpu.median:.2f}" if cpu and not result["name"].startswith("startup") else "",
                f"{user.median:.2f}" if user and not result["name"].startswith("startup") else "",
                f"{peak:.0f}" if peak else "",
                rounds.chosen(entry),
            ]
        )
    return f"**{result['title']}** (`{result['name']}`)\n\n{table(head, rows)}" if rows else ""


def goals(workloads):
    rows = []
    for target in targets.evaluate(workloads):
        reached = target.reached
        if isinstance(reached, rounds.Spread):
            reached = spread(reached, target.unit)
        elif reached is not None:
            reached = f"{number(reached)}{target.unit}"
        bound = f"{'at most' if target.most else 'at least'} {target.want:g}{target.unit}"
        met = {True: "yes", False: "**no**", None: "not measured"}[target.met]
        rows.append([target.work, bound, reached or "", met])
    return table(["", "wanted", "reached", "met"], rows)


SUMMARY = [
    ("save-direct", "library", "direct save"),
    ("save-direct", "drop-in", "direct save, in the place of libvirt's helper"),
    ("save-cached", "library", "cached save with the sync, and our default for it"),
    ("restore-direct", "library", "direct restore"),
    ("restore-hot", "library", "restore from the page cache"),
    ("qemu-save-direct", "vmspool", "a real QEMU, direct save, `vmspool save`"),
    ("qemu-restore-direct", "vmspool", "a real QEMU, direct restore, `vmspool restore`"),
]


def summary(workloads):
    """What a newcomer wants to know; for the README."""
    by_name = {result["name"]: result for result in workloads}
    rows = []
    for name, ours, title in SUMMARY:
        result = by_name.get(name)
        stock = result and rounds.entry_of(result, "stock")
        entry = result and rounds.entry_of(result, ours)
        if not stock or not entry:
            continue
        if result["time"]:
            medians = [f"{rounds.seconds(one).median:.2f} s" for one in (stock, entry)]
            times = rounds.ratio(result, "stock", ours, time=True)
        else:
            medians = [f"{number(rounds.speed(one).median)} MB/s" for one in (stock, entry)]
            times = rounds.ratio(result, ours)
        rows.append([title, *medians, f"{number(times.median)}×"])
    return table(["", "`libvirt_iohelper`", "vmspool", "times as fast"], rows) if rows else ""


def _grid(cells, row, column, value, corner):
    """One table; @row and @column name members of a cell."""
    columns = sorted({cell[column] for cell in cells})
    lines = []
    for key in sorted({cell[row] for cell in cells}):
        line = [size(key) if key >= 128 else str(key)]
        for other in columns:
            found = [c for c in cells if c[row] == key and c[column] == other and c["samples"]]
            line.append(value(found[0]) if found else "–")
        lines.append(line)
    return table([corner, *map(size, columns)], lines)


def _speed(cell):
    return number(rounds.speed(cell).median)


def _processor(part):
    def value(cell):
        """Of both sides: what moving a GiB costs the host."""
        return number(
            rounds.Spread.of(
                (sample[part] + sample[f"driver_{part}"]) * rounds.GIB / sample["bytes"]
                for sample in cell["samples"]
            ).median
        )

    return value


def transport_sweep(cells):
    parts = []
    for kind in ("pipe", "socket"):
        some = [cell for cell in cells if cell["transport"] == kind and cell["samples"]]
        if not some:
            continue
        granted = {cell["buffer"]: cell["samples"][0]["granted"] for cell in some}
        clipped = [f"{size(a)}: {size(g)}" for a, g in sorted(granted.items()) if a != g]
        title = f"**{kind}**, MB/s by buffer (down) and message (across)"
        if clipped:
            title += f"; granted other than asked: {', '.join(clipped)}"
        parts += [title, _grid(some, "buffer", "message", _speed, "buffer")]
        for part in ("user", "system"):
            parts += [
                f"{kind}, {part} seconds per GiB, writer and reader together",
                _grid(some, "buffer", "message", _processor(part), "buffer"),
            ]
    return "\n\n".join(parts)


def ring_sweep(cells):
    parts = []
    for work in ("save", "restore"):
        some = [cell for cell in cells if cell["work"] == work and cell["samples"]]
        if not some:
            continue
        parts += [
            f"**direct {work}**, MB/s by number of buffers (down) and their size (across)",
            _grid(some, "buffers", "size", _speed, "buffers"),
            f"direct {work}, processor seconds of the helper per GiB",
            _grid(some, "buffers", "size", lambda c: number(rounds.cpu_spread(c).median), "buffers"),
            f"direct {work}, peak MiB of the helper",
            _grid(some, "buffers", "size", lambda c: f"{rounds.peak(c):.0f}", "buffers"),
        ]
    return "\n\n".join(parts)


def whole(result, charts=()):
    """All of it, as one text. @charts: (title, path to link) of those that were drawn."""
    parts = []
    if result["quick"]:
        parts.append("A quick run: it shows that everything works, and nothing else. No measurement.")
    facts = "; ".join(f"{name}: {value}" for name, value in result["machine"].items())
    parts += [
        f"Command: `{result['command']}`; rounds: {result['rounds']}; {size(result['bytes'])} a transfer, a "
        f"guest of {result['memory']} MiB; a build of type {result['buildtype']}; {result['elapsed'] / 60:.0f} "
        "minutes.",
        f"Machine: {facts}.",
    ]
    workloads = result["workloads"]
    if workloads:
        if not result["quick"]:
            parts += ["### Wanted and reached", goals(workloads)]
        short = summary(workloads)
        if short:
            parts += ["### In short", short]
        parts.append("### Tables")
        parts += [text for text in map(workload, workloads) if text]
    if result["sweeps"].get("transport"):
        parts += ["### Transport, buffer, message", transport_sweep(result["sweeps"]["transport"])]
    if result["sweeps"].get("ring"):
        parts += ["### The helper's ring", ring_sweep(result["sweeps"]["ring"])]
    if charts:
        parts.append("### Charts")
        parts += [f"![{title}]({path})" for title, path in charts]
    if result["notices"]:
        parts += ["### Notes of this run", "\n".join(f"- {notice}" for notice in result["notices"])]
    return "\n\n".join(parts)


def put_in(path, name, text):
    """Replaces what stands between the marks in a file."""
    begin, end = BEGIN.format(name=name), END.format(name=name)
    old = path.read_text(encoding="utf-8")
    marked = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}\n", re.S)
    if not marked.search(old):
        raise ValueError(f"{path} has no '{begin}'")
    new = marked.sub(lambda _: f"{begin}\n\n{text}\n\n{end}\n", old)
    path.write_text(new, encoding="utf-8")
