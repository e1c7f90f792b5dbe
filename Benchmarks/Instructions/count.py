#!/usr/bin/env python3
"""Adds up callgrind's counts: instructions for each encoded frame, by library, as one JSON object.

usage: count.py CALLGRIND_OUT SECONDS
"""

import collections
import json
import re
import sys

#: The part that a library belongs to, by its name; the first match counts.
PARTS = (
    ("opus", r"libopus"),
    ("crypto", r"libsrtp|libcrypto|libssl|libfreebl|libsoftokn|libnss|libnspr|libplc|libplds"),
    ("speexdsp", r"libspeexdsp"),
    ("card", r"libscripted_card"),
    ("alsa", r"libasound"),
    ("slow", r"libslow|vgpreload"),
    ("libc_libm", r"/libc\.|/libm\.|/libpthread|ld-linux|libstdc|libgcc"),
    ("ours", r"handset"),
)
NAME = re.compile(r"\((\d+)\)(?: (.*))?")


class Names:
    """Names are written out once, and given by number from then on."""

    def __init__(self):
        self.known = {}

    def read(self, text):
        number, name = NAME.fullmatch(text.strip()).groups()
        if name is not None:
            self.known[number] = name
        return self.known[number]


def part_of(library):
    return next((part for part, pattern in PARTS if re.search(pattern, library)), "other")


def count(lines):
    objects, functions = Names(), Names()
    spent, calls = collections.Counter(), collections.Counter()
    library, called, is_call = "", "", False
    for line in lines:
        key, separator, value = line.partition("=")
        if separator and key == "ob":
            library = objects.read(value)
        elif separator and key == "cob":
            objects.read(value)
        elif separator and key == "fn":
            functions.read(value)
        elif separator and key == "cfn":
            called = functions.read(value)
        elif separator and key == "calls":
            calls[called] += int(value.split()[0])
            is_call = True
        elif line[:1] in "+-*0123456789" and line.strip():
            # The cost of a called function is listed again in its own lines.
            if not is_call:
                spent[library] += int(line.split()[1])
            is_call = False
    return spent, calls


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        spent, calls = count(file)
    frames = calls["opus_encode"]
    parts = collections.Counter()
    for library, instructions in spent.items():
        parts[part_of(library)] += instructions
    print(
        json.dumps(
            {
                "seconds": float(sys.argv[2]),
                "frames": frames,
                "decodes": calls["opus_decode"],
                "instructions": {part: round(number / max(frames, 1)) for part, number in parts.most_common()},
            }
        )
    )


if __name__ == "__main__":
    main()
