#!/usr/bin/env python3
"""Draws the results of `scripts/bench load`: four panels over the number of connections, as one SVG.

usage: chart.py LOAD.jsonl > load.svg
"""

import json
import math
import sys

PANEL, GAP, LEFT, TOP, HEIGHT = 300, 60, 52, 48, 170
COLOURS = ("#3367d6", "#c5221f")


def panels(rows):
    """Title, unit, and the lines of each panel: a name and a value for each row."""
    return [
        ("Memory for each connection", "kB", [("", [row["per_connection_kb"] for row in rows])]),
        ("Invites completed in a second", "", [("", [row["per_second"] for row in rows])]),
        (
            "Invite to accept, at half that load",
            "ms",
            [("p50", [row["half"]["p50_ms"] for row in rows]), ("p99", [row["half"]["p99_ms"] for row in rows])],
        ),
        (
            "Back after kill -9",
            "s",
            [("half of them", [row["resume"]["p50_s"] for row in rows]), ("99.9 %", [row["resume"]["p999_s"] for row in rows])],
        ),
    ]


def nice(value):
    """The least of 1, 2, 2.5 and 5 times a power of ten that is no smaller."""
    power = 10 ** math.floor(math.log10(value)) if value > 0 else 1
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= value * 0.999)


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{words}</text>'


def panel(x, title, unit, lines, counts):
    top = nice(1.05 * max(value for _, values in lines for value in values) or 1)
    low, high = math.log10(min(counts)), math.log10(max(counts))

    def place(count, value):
        across = (math.log10(count) - low) / (high - low) if high > low else 0.5
        return x + across * (PANEL - 20), TOP + HEIGHT * (1 - value / top)

    parts = [text(x, TOP - 18, title + (f", {unit}" if unit else ""), "start", ' font-weight="600"')]
    for step in range(5):
        value = top * step / 4
        y = TOP + HEIGHT * (1 - step / 4)
        parts.append(f'<line x1="{x}" y1="{y:.1f}" x2="{x + PANEL - 20}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(text(x - 6, y + 4, f"{value:g}", "end"))
    for count in counts:
        parts.append(text(place(count, 0)[0], TOP + HEIGHT + 18, f"{count:,}"))
    for (name, values), colour in zip(lines, COLOURS):
        points = [place(count, value) for count, value in zip(counts, values)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
        if name:
            a, b = points[-1]
            parts.append(text(a, b - 8, name, "end", f' style="fill:{colour}"'))
    return parts


def draw(rows):
    rows = sorted(rows, key=lambda row: row["connections"])
    counts = [row["connections"] for row in rows]
    width, height = 2 * (PANEL + GAP), 2 * (TOP + HEIGHT + 44)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        "<style>text { fill: #444 } @media (prefers-color-scheme: dark) { text { fill: #ccc } }</style>",
    ]
    for index, (title, unit, lines) in enumerate(panels(rows)):
        parts.append(f'<g transform="translate(0 {(index // 2) * (TOP + HEIGHT + 44)})">')
        parts += panel(LEFT + (index % 2) * (PANEL + GAP), title, unit, lines, counts)
        parts.append(text(LEFT + (index % 2) * (PANEL + GAP) + (PANEL - 20) / 2, TOP + HEIGHT + 36, "connections"))
        parts.append("</g>")
    return "\n".join(parts + ["</svg>", ""])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(draw([row for row in map(json.loads, filter(str.strip, file)) if not row.get("tls")]))


if __name__ == "__main__":
    main()
