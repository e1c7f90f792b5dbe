#!/usr/bin/env python3
"""Keeps the results of a release, and compares later results with them.

usage: history.py keep VERSION RESULT.json
       history.py compare RESULT.json [OLDER.json]

RESULT.json is what `scripts/bench --json` printed. `keep` writes it to Benchmarks/History/VERSION.json, with the commit and the
machine that it names. `compare` takes the newest file there, or OLDER.json, and exits with 1 if a call needs over 10 % more
instructions: in all, or in a part that is at least 1 % of the call. Only instructions decide, because they repeat within 1 %
on any x86-64 machine; times and memory are printed beside the older ones.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys

HISTORY = pathlib.Path(__file__).parent / "History"
#: Growth of instructions that fails a comparison.
MOST_GROWTH = 1.10
#: A part of a call below this share of it is not compared: a few thousand instructions more do not matter.
LEAST_SHARE = 0.01
#: What the rig executes, not the call.
RIG = ("card", "slow")
VERSION = re.compile(r"\d+\.\d+\.\d+")


def version_of(path: pathlib.Path) -> tuple[int, ...]:
    return tuple(int(number) for number in path.stem.split("."))


def newest(folder: pathlib.Path) -> pathlib.Path | None:
    """The results of the latest version in a folder; None if none were kept."""
    return max((path for path in folder.glob("*.json") if VERSION.fullmatch(path.stem)), key=version_of, default=None)


def read(path: pathlib.Path | str) -> dict:
    try:
        result = json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"history.py: cannot read {path}: {error}; it is to be what `scripts/bench --json` printed")
    if not isinstance(result, dict) or "run" not in result:
        sys.exit(f"history.py: {path} does not say of which run it is; it is to be what `scripts/bench --json` printed")
    return result


def calls(result: dict) -> dict:
    """Instructions of each part, and in all, by kind and complexity of the call."""
    rows = {}
    for row in result.get("instructions", []):
        parts = {part: number for part, number in row["instructions"].items() if part not in RIG}
        rows[row["kind"], row["complexity"]] = parts | {"in all": row["total"]}
    return rows


def growth(older: dict, newer: dict) -> list[tuple]:
    """Each part of each call that both results have: call, part, instructions before and now, and whether they are too many."""
    rows = []
    before, now = calls(older), calls(newer)
    for call in sorted(before.keys() & now.keys(), key=str):
        for part in sorted(before[call].keys() | now[call].keys()):
            was, is_ = before[call].get(part, 0), now[call].get(part, 0)
            matters = is_ >= LEAST_SHARE * now[call]["in all"]
            rows.append((call, part, was, is_, matters and is_ > MOST_GROWTH * was))
    return rows


def compare(older: dict, newer: dict) -> bool:
    """Prints what changed. Returns whether nothing grew too much."""
    rows = growth(older, newer)
    if not rows:
        sys.exit("history.py: the two results have no call in common; run `scripts/bench instructions --json`")
    print(f"Instructions for 20 ms of a call, in thousands: commit {older['run'].get('commit')} and {newer['run'].get('commit')}")
    for (kind, complexity), part, was, is_, is_too_much in rows:
        ratio = f"{is_ / was:6.2f}" if was else "   new"
        print(f"  {kind:21} {complexity:10} {part:>10} {was / 1000:10.1f} {is_ / 1000:10.1f} {ratio}{'  TOO MUCH' if is_too_much else ''}")
    for row in newer.get("cost", []):
        for old in older.get("cost", []):
            if row["calls"] == old["calls"] and "ratio_paced" in row and "ratio_paced" in old:
                print(f"Cost of {row['calls']} calls, over the paced floor: {old['ratio_paced']} and {row['ratio_paced']}")
    if "memory" in newer and "memory" in older:
        print(f"Memory for each added call, kB: {older['memory'].get('per_call_kb')} and {newer['memory'].get('per_call_kb')}")
    return not any(row[-1] for row in rows)


def main() -> None:
    match sys.argv[1:]:
        case ["keep", version, result] if VERSION.fullmatch(version):
            kept = read(result)
            if kept.get("problems"):
                sys.exit(f"history.py: these results are invalid: {kept['problems'][0]}")
            HISTORY.mkdir(exist_ok=True)
            (HISTORY / f"{version}.json").write_text(json.dumps(kept, indent=1) + "\n")
        case ["compare", result]:
            later, latest = read(result), newest(HISTORY)
            if latest is None:
                print("There is no release to compare with. To keep the results of one: history.py keep VERSION RESULT.json")
                sys.exit(0)
            sys.exit(0 if compare(read(latest), later) else 1)
        case ["compare", result, older]:
            sys.exit(0 if compare(read(older), read(result)) else 1)
        case _:
            print(__doc__, file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
