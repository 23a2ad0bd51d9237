# charts: the result as SVG
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import rounds
from report import size

OURS = {"drop-in", "library", "vmspool", "socket", "dontcache", "paced", "cached"}
OURS_COLOUR, STOCK_COLOUR, OTHER_COLOUR, LIMIT_COLOUR = "#1b6ca8", "#c0504d", "#9a9a9a", "#5a8f3c"

GROUPS = [
    ("save", "Saving", ["save-direct", "save-cached", "null", "tmpfs"]),
    ("restore", "Restoring", ["restore-direct", "restore-cold", "restore-hot"]),
    ("qemu", "A real QEMU", ["qemu-save-direct", "qemu-save-cached", "qemu-restore-direct", "qemu-restore-hot"]),
    ("virsh", "As a user sees it", ["virsh-save-direct", "virsh-save-cached", "virsh-restore-direct", "virsh-restore-cold"]),
    ("startup", "A file of 1 MiB", ["startup-direct", "startup-cached"]),
]


def plotting():
    """matplotlib's pyplot, or None."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    # The same figures make the same file.
    matplotlib.rcParams["svg.hashsalt"] = "vmspool"
    matplotlib.rcParams["font.size"] = 9
    from matplotlib import pyplot

    return pyplot


def _colour(entry):
    if entry["name"] == "stock":
        return STOCK_COLOUR
    if entry["name"].startswith("fio"):
        return LIMIT_COLOUR
    return OURS_COLOUR if entry["name"] in OURS else OTHER_COLOUR


def _bars(axes, result):
    entries = [entry for entry in result["entries"] if entry["samples"]]
    spreads = [rounds.seconds(entry) if result["time"] else rounds.speed(entry) for entry in entries]
    scale = 1000 if result["time"] else 1
    medians = [spread.median * scale for spread in spreads]
    errors = [
        [(spread.median - spread.least) * scale for spread in spreads],
        [(spread.most - spread.median) * scale for spread in spreads],
    ]
    places = range(len(entries))
    axes.barh(places, medians, xerr=errors, color=[_colour(entry) for entry in entries], height=0.7,
              error_kw={"elinewidth": 0.8, "capsize": 2})
    axes.set_yticks(list(places), [entry["title"] for entry in entries])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_title(result["title"], fontsize=9, loc="left")
    axes.set_xlabel("ms, less is better" if result["time"] else "MB/s, more is better")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _group(pyplot, results):
    heights = [1.1 + 0.26 * len(result["entries"]) for result in results]
    figure, axes = pyplot.subplots(
        len(results), 1, figsize=(8, sum(heights)), gridspec_kw={"height_ratios": heights}, squeeze=False
    )
    for one, result in zip(axes[:, 0], results):
        _bars(one, result)
    figure.tight_layout()
    return figure


def _lines(axes, cells, value, label):
    buffers = sorted({cell["buffer"] for cell in cells})
    for place, buffer in enumerate(buffers):
        some = sorted((c for c in cells if c["buffer"] == buffer and c["samples"]), key=lambda c: c["message"])
        shade = 0.25 + 0.7 * place / max(len(buffers) - 1, 1)
        axes.plot(
            [cell["message"] for cell in some],
            [value(cell) for cell in some],
            marker="o", markersize=3, linewidth=1.2, color=(0.1, 0.35, 0.6, shade), label=size(buffer),
        )
    messages = sorted({cell["message"] for cell in cells})
    axes.set_xscale("log", base=2)
    axes.set_xticks(messages, [size(message) for message in messages], rotation=45)
    axes.minorticks_off()
    axes.set_ylabel(label)


def _transport(pyplot, cells):
    """Speed above, what it costs the processor below; pipe and socket pair beside one another."""

    def cost(cell):
        return rounds.Spread.of(
            (s["user"] + s["system"] + s["driver_user"] + s["driver_system"]) * rounds.GIB / s["bytes"]
            for s in cell["samples"]
        ).median

    figure, axes = pyplot.subplots(2, 2, figsize=(9, 7), sharex=True, sharey="row")
    for column, kind in enumerate(("pipe", "socket")):
        some = [cell for cell in cells if cell["transport"] == kind and cell["samples"]]
        if not some:
            continue
        _lines(axes[0][column], some, lambda cell: rounds.speed(cell).median, "MB/s")
        _lines(axes[1][column], some, cost, "processor seconds per GiB, both sides")
        axes[0][column].set_ylim(bottom=0)
        axes[1][column].set_yscale("log")
        axes[0][column].set_title(kind)
        axes[1][column].set_xlabel("message")
    axes[0][0].legend(title="buffer", fontsize=8)
    figure.tight_layout()
    return figure


def _ring(pyplot, cells):
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for one, work in zip(axes, ("save", "restore")):
        some = [cell for cell in cells if cell["work"] == work and cell["samples"]]
        for place, bytes_ in enumerate(sorted({cell["size"] for cell in some})):
            line = sorted((c for c in some if c["size"] == bytes_), key=lambda c: c["buffers"])
            spreads = [rounds.speed(cell) for cell in line]
            one.errorbar(
                [cell["buffers"] for cell in line],
                [spread.median for spread in spreads],
                yerr=[
                    [spread.median - spread.least for spread in spreads],
                    [spread.most - spread.median for spread in spreads],
                ],
                marker="o", markersize=3, linewidth=1.2, capsize=2, elinewidth=0.6, label=size(bytes_),
            )
        one.set_title(f"direct {work}")
        one.set_xlabel("buffers")
        one.set_ylim(bottom=0)
    axes[0].set_ylabel("MB/s")
    axes[0].legend(title="size of each", fontsize=8)
    figure.tight_layout()
    return figure


def draw(result, folder):
    """Draws what there is; returns (title, file name) of each."""
    pyplot = plotting()
    if not pyplot:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []

    def keep(name, title, figure):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
        drawn.append((title, f"{name}.svg"))

    by_name = {one["name"]: one for one in result["workloads"]}
    for name, title, names in GROUPS:
        results = [by_name[one] for one in names if one in by_name]
        results = [one for one in results if any(entry["samples"] for entry in one["entries"])]
        if results:
            keep(name, title, _group(pyplot, results))
    if result["sweeps"].get("transport"):
        keep("transport", "Transport, buffer and message", _transport(pyplot, result["sweeps"]["transport"]))
    if result["sweeps"].get("ring"):
        keep("ring", "The helper's ring", _ring(pyplot, result["sweeps"]["ring"]))
    return drawn
