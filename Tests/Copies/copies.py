"""Names the functions that copied many bytes in a media thread, as tap.c counted them, and judges them.

copies.py HANDSET COUNTS [--all]
"""

import collections
import subprocess
import sys

# Functions that copy sound, packets or a call's plan on purpose, by a part of their names.
ALLOWED = {
    "FixedBuffer": "sound",
    "SyncBuffer.": "sound that waits: it is appended and taken, and moves up behind a frame or a stretch",
    "DecodedSound.handOut": "the same, where the compiler puts it into its only caller",
    "TimeStretch.accelerate": "the same, where the compiler puts it into its caller",
    "TimeStretch.decelerate": "the same",
    # OpusDecoder.copyState ends in the copy, so the copy counts for its caller.
    "PlayoutBuffer.play(_:)": "the decoder's state, to go back to when a packet comes after all",
    "PlayoutBuffer.hold(_:_:)": "the decoder's state, to go back to when a packet comes after all",
    "FormatDecoders.prepare": "the same, where the compiler puts it into its caller",
    "DecodedSound.hold": "the same",
    "EchoDelayFinder.add": "600 ms of the sound that was played, once in 600 ms",
    "SpeakerphoneProcessor.process": "the sound of a frame that is played",
    "WorkerLoop.receiveAll": "a datagram that is handed to the connections' thread whole",
    "WorkerLoop.receive(from:limit:)": "the same, where the compiler puts it into its caller",
    "ForwardedDatagram.init": "the same, where it is made",
}


def names(binary, offsets):
    """The function around each offset of the program."""
    symbols = []
    listed = subprocess.run(["nm", "--defined-only", "-n", binary], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        parts = line.split(maxsplit=2)
        if len(parts) == 3 and parts[1] in "tT":
            symbols.append((int(parts[0], 16), parts[2]))
    found, index = {}, 0
    for offset in sorted(offsets):
        while index + 1 < len(symbols) and symbols[index + 1][0] <= offset:
            index += 1
        found[offset] = symbols[index][1] if symbols else "?"
    plain = subprocess.run(["swift", "demangle", "--simplified", *found.values()], capture_output=True, text=True)
    if plain.returncode == 0:
        for offset, line in zip(found, plain.stdout.splitlines()):
            found[offset] = line.split(" ---> ")[-1]
    return found


def main():
    binary, counts, *rest = sys.argv[1:]
    places, libraries = {}, collections.Counter()
    seen, *lines = open(counts).read().splitlines()
    if seen == "copies 0":
        sys.exit("copies: no media thread copied anything, so the count is wrong")
    for line in lines:
        module, offset, *numbers = line.split()
        count, size = map(int, numbers)
        if module == binary:
            places[int(offset, 16)] = (count, size)
        else:
            libraries[module.rsplit("/", 1)[-1]] += size
    called = names(binary, places)
    functions = collections.defaultdict(lambda: [0, 0])
    for place, (count, size) in places.items():
        functions[called[place]][0] += count
        functions[called[place]][1] += size
    wrong = 0
    for name, (count, size) in sorted(functions.items(), key=lambda item: -item[1][1]):
        reason = next((why for part, why in ALLOWED.items() if part in name), None)
        wrong += reason is None
        if reason is None or rest:
            why = f" ({reason})" if reason else ""
            print(f"{size:>12} bytes in {count:>7} copies of {size // count:>6}: {name}{why}")
    if rest:
        for name, size in libraries.most_common():
            print(f"{size:>12} bytes by {name}")
    print(f"{wrong} functions copy more than they should" if wrong else "only sound and packets are copied")
    return wrong > 0


sys.exit(main())
