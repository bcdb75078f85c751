"""The figures of one run as Markdown tables: absolute, what a proxy adds to the direct connection, and the ratio."""


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def mark(figures):
    """What went wrong, instead of figures that would not mean what they say."""
    return f"{figures['errors']} errors: {figures['first_error']}" if figures.get("errors") else ""


def ms(us):
    return f"{us / 1000:.2f}"


def compared(figures, direct, key):
    """"0.21 (+0.09, x1.8)": milliseconds, what was added, the ratio."""
    if direct is None or figures is direct:
        return ms(figures[key])
    ratio = figures[key] / direct[key] if direct.get(key) else 0
    return f"{ms(figures[key])} ({(figures[key] - direct[key]) / 1000:+.2f}, x{ratio:.1f})"


def stream_table(out, streams):
    direct = out["targets"].get("direct", {}).get("streams", {}).get(streams)
    heads = ["", "event p50 ms", "event p99 ms", "first byte p50 ms", "first byte p99 ms", "cpu s"]
    keys = ["delay_p50_us", "delay_p99_us", "first_byte_p50_us", "first_byte_p99_us"]
    rows = []
    for name, target in out["targets"].items():
        figures = target["streams"][streams]
        cells = [mark(figures), "", "", "", ""]
        if "delay_p50_us" in figures:
            cells = [compared(figures, direct, key) for key in keys]
            cells[0] += f" [{mark(figures)}]" if mark(figures) else ""
            cells.append("" if name == "direct" else f"{figures['cpu_seconds']:.2f}")
        rows.append([name, *cells])
    return table(heads, rows)


def bulk_table(out):
    rows, base = [], None
    for name, target in out["targets"].items():
        figures = target["bulk"]
        if mark(figures) or not figures["seconds"]:
            rows.append([name, mark(figures) or "nothing", "", ""])
            continue
        rate = figures["bytes"] / figures["seconds"] / 1e6
        base = rate if name == "direct" else base
        ratio = f"{rate / base:.2f}" if base else ""
        # The first round is not in `bytes`, but the processor time is of all four.
        cpu = figures["cpu_seconds"] / (figures["bytes"] / 3 * 4 / 1e9)
        rows.append([name, f"{rate:.0f}", ratio, "" if name == "direct" else f"{cpu:.2f}"])
    return table(["", "MB/s", "of direct", "cpu s per GB"], rows)


def memory_table(out):
    rows = []
    for name, target in out["targets"].items():
        if name == "direct":
            continue
        loads = [target["streams"][streams].get("rss_kib", 0) for streams in out["paces"]]
        idle, own = target["idle_kib"]
        rows.append([name, *(f"{kib / 1024:.1f}" for kib in [idle, own, *loads])])
    loads = [f"{streams} streams" for streams in out["paces"]]
    return table(["MiB resident", "idle", "of it not from files", *loads], rows)


def as_text(out):
    machine = out["machine"]
    worst = {
        name: max(figures.get("others_cores", 0) for figures in [*target["streams"].values(), target["bulk"]])
        for name, target in out["targets"].items()
    }
    others = ", ".join(f"{name} {cores}" for name, cores in worst.items())
    parts = [
        f"{out['date']}, {machine['cores']} cores, Linux {machine['kernel']}. "
        f"Cores that other programs used meanwhile, at most: {others}."
    ]
    for streams, (interval, _, _) in out["paces"].items():
        parts.append(f"{streams} streams, an event every {interval // 1000} ms in each:")
        parts.append(stream_table(out, streams))
    parts += ["One answer after another in bulk:", bulk_table(out), memory_table(out)]
    versions = [f"{name} {target['version']}" for name, target in out["targets"].items() if target["version"]]
    parts.append("Versions: " + ", ".join(versions) + ".")
    for name, why in out["not_measured"].items():
        parts.append(f"Not measured: {name}: {why}.")
    if "gateway_events" in out:
        events = out["gateway_events"]
        parts.append(f"The gateway's account: {events['relayed']} requests relayed, {events['others']} others.")
    return "\n\n".join(parts)
