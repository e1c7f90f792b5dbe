#!/usr/bin/env python3
"""Writes the weights of SpeechNetwork, and what its test expects, from the Python package silero-vad.

usage: weights.py FOLDER

FOLDER has the recordings (corpus.py). Needs silero-vad==6.2.0, onnx, onnxruntime, numpy, scipy, soundfile.

The weights are those of the 16 kHz branch. Of the first layer those for bins of less than 4 kHz are kept, of the third and fourth
those that ever see sound. Each is a number of 16 bits times its output's scale. The test's expectation is what onnxruntime says of whole
weights and of the same sound at 16 kHz, band-limited.
"""

import base64
import importlib.metadata
import importlib.util
import pathlib
import struct
import sys

import numpy

VERSION = "6.2.0"
ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "Sources/Media/VoiceActivity/SpeechWeights+Data.swift"
FIXTURE = ROOT / "Tests/VoiceActivityTests/SpeechNetworkReference.swift"


def model():
    if importlib.metadata.version("silero-vad") != VERSION:
        sys.exit(f"weights.py takes the weights of silero-vad {VERSION}: pip install silero-vad=={VERSION}")
    # Importing the package would import torch.
    package = pathlib.Path(importlib.util.find_spec("silero_vad").submodule_search_locations[0])
    return package / "data/silero_vad.onnx"


def tensors(path):
    """The constants of the branch for 16 kHz, by their names in PyTorch."""
    import onnx

    choice = next(node for node in onnx.load(str(path)).graph.node if node.op_type == "If")
    branch = next(attribute.g for attribute in choice.attribute if attribute.name == "then_branch")
    found = {}
    for node in branch.node:
        if node.op_type == "Constant":
            value = onnx.numpy_helper.to_array(node.attribute[0].t)
            if value.dtype == numpy.float32:
                found[node.output[0].split("Inline_0__")[-1]] = value
    return found


def layers(found):
    """For each layer its weights, output by input, in the order of SpeechLayer, and its biases."""

    def convolution(number, taps, bins=None):
        weights = found[f"encoder.{number}.reparam_conv.weight"][:, :bins, taps]
        # Inputs are ordered by moment, then by channel.
        return weights.transpose(0, 2, 1).reshape(len(weights), -1), found[f"encoder.{number}.reparam_conv.bias"]

    yield convolution(0, slice(0, 3), 64)
    yield convolution(1, slice(0, 3))
    yield convolution(2, slice(1, 3))
    yield convolution(3, slice(1, 2))
    yield (
        numpy.concatenate([found["decoder.rnn.weight_ih"], found["decoder.rnn.weight_hh"]], axis=1),
        found["decoder.rnn.bias_ih"] + found["decoder.rnn.bias_hh"],
    )
    yield found["decoder.decoder.2.weight"][:, :, 0], found["decoder.decoder.2.bias"]


def text(data):
    """Base 64 as lines of a Swift string."""
    whole = base64.b64encode(data).decode()
    return "\\\n".join("        " + whole[at : at + 108] for at in range(0, len(whole), 108))


def write_weights(found):
    shorts, floats = b"", []
    for weights, biases in layers(found):
        scales = numpy.abs(weights).max(axis=1) / 32_767
        shorts += numpy.round(weights / scales[:, None]).astype("<i2").T.tobytes()
        floats += [*scales, *biases]
    DATA.write_text(f'''\
// Written by Benchmarks/Voice/weights.py from silero-vad {VERSION}: copyright 2020-present Silero Team, MIT license (NOTICE).

extension SpeechWeights {{
    /// Little-endian numbers of 16 bits, layer by layer, input by input, in base 64.
    static let weights = """
{text(shorts)}
        """

    /// For each layer the scales and the biases of its outputs: little-endian floating point numbers, in base 64.
    static let scales = """
{text(struct.pack(f"<{len(floats)}f", *floats))}
        """
}}
''')


def write_fixture(path, folder):
    import onnxruntime
    import soundfile
    from scipy import signal

    said, rate = soundfile.read(folder / "usr/share/asterisk/sounds/fr_CA_f_June/privacy-to-blacklist-last-caller.wav", dtype="float32")
    assert rate == 8_000
    said = signal.sosfilt(signal.butter(8, 3_400, fs=rate, output="sos"), numpy.pad(said, (0, 4_000)))
    heard = numpy.clip(numpy.round(said * 32_768), -32_768, 32_767).astype("<i2")
    heard = heard[: len(heard) // 256 * 256]
    wide = signal.resample(heard / 32_768, 2 * len(heard)).astype(numpy.float32)
    wide = numpy.pad(wide, (64, 0))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    state, odds = numpy.zeros((2, 1, 128), numpy.float32), []
    for at in range(0, len(wide) - 575, 512):
        chances, state = session.run(None, {"input": wide[None, at : at + 576], "state": state, "sr": numpy.array(16_000)})
        odds.append(float(chances[0, 0]))
    FIXTURE.write_text(f'''\
// Written by Benchmarks/Voice/weights.py.

/// A sentence, and how likely onnxruntime found each 32 ms of it to be speech.
enum SpeechNetworkReference {{
    /// 16-bit samples at 8 kHz, little-endian, in base 64.
    static let sound = """
{text(heard.tobytes())}
        """

    /// 0…1.
    static let chances: [Float] = [
        {", ".join(f"{value:.4f}" for value in odds)}
    ]
}}
''')


def main():
    path = model()
    write_weights(tensors(path))
    write_fixture(path, pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
