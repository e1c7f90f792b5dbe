"""Prints the package's copyright file: NOTICE, and the licences of what is linked into the program.

    python3 packaging/copyright.py ROOT

Licences that Debian has in /usr/share/common-licenses are named; the others are quoted from the checkouts of the last build.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(sys.argv[1])
CHECKOUTS = ROOT / ".build/checkouts"


def comment(path, words):
    """The text of the comment of a C file that has these words."""
    text = (CHECKOUTS / path).read_text()
    found = next(found for found in re.finditer(r"/\*(.*?)\*/", text, re.S) if words in found[1])
    return "\n".join(re.sub(r"^\s*\*? ?", "", line).rstrip() for line in found[1].strip().split("\n"))


def whole(path):
    return (CHECKOUTS / path).read_text().strip()


def exception():
    text = whole("swift-argument-parser/LICENSE.txt")
    return text[text.index("As an exception,") :].strip()


def mit():
    text = whole("swift-nio/Sources/CNIOLLHTTP/LICENSE")
    return text[text.index("Permission is hereby granted") :]


HEAD = """\
Handset: a headless call device and signaling exchange.

Copyright 2026 the authors of Handset. No licence has been chosen for Handset itself yet.

What follows are the libraries that the program contains or loads, with their licences. Those under "Swift packages", "The
language's libraries" and "Numbers" are linked into /usr/bin/handset; those under "Libraries of the system" are Debian packages that
it loads, each with a copyright file of its own.

On Debian systems the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0, that of the GNU Lesser General
Public License 2.1 in /usr/share/common-licenses/LGPL-2.1, that of the GNU General Public License 3 in
/usr/share/common-licenses/GPL-3, and that of the Mozilla Public License 2.0 in /usr/share/common-licenses/MPL-2.0.
"""

TEXTS = [
    ("Swift-exception: the Runtime Library Exception to the Apache License 2.0", exception()),
    ("llhttp, in swift-nio: MIT", whole("swift-nio/Sources/CNIOLLHTTP/LICENSE")),
    ("SHA-1 of FreeBSD, in swift-nio: BSD-3-Clause", comment("swift-nio/Sources/CNIOSHA1/c_nio_sha1.c", "Redistribution")),
    ("cpp_magic.h of uSHET, in swift-nio: MIT", "Copyright (c) 2014 Thomas Nixon, Jonathan Heathcote\n\n" + mit()),
    ("Weights of Silero VAD: MIT", "Copyright (c) 2020-present Silero Team\n\n" + mit()),
    ("Data of Unicode, in the language's libraries: Unicode-3.0", (ROOT / "packaging/licences/Unicode-3.0.txt").read_text().strip()),
]

print(HEAD)
print((ROOT / "NOTICE").read_text().strip())
print("\n\nLICENCES\n")
for name, text in TEXTS:
    print(name + "\n")
    for line in text.split("\n"):
        indent = "  " + line[: len(line) - len(line.lstrip())]
        print(textwrap.fill(line.strip(), 110, initial_indent=indent, subsequent_indent=indent))
    print()
