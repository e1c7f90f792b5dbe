import AudioKit
import Glibc
import TestSupport

// usage: codecs ROUNDS
//
// Encodes and decodes ten seconds of speech-like sound with each codec, in frames of 20 ms, as often as ROUNDS says, and prints
// for each codec a JSON object with the CPU time of one frame: the median of the rounds, in microseconds.

/// One codec, both ways.
protocol Codec {
    mutating func encode(_ frame: Span<Int16>, into packet: inout MutableSpan<UInt8>) -> Int
    mutating func decode(_ packet: Span<UInt8>, into frame: inout MutableSpan<Int16>)
}

final class Opus: Codec {
    private var encoder: OpusEncoder
    private var decoder: OpusDecoder

    /// As the benchmark of a call's cost has it.
    init(complexity: Int) throws {
        var settings = EncoderSettings()
        settings.complexity = complexity
        settings.bitrateBps = 32_000
        settings.expectedLossPercent = 10
        encoder = try OpusEncoder(settings: settings)
        decoder = try OpusDecoder()
    }

    func encode(_ frame: Span<Int16>, into packet: inout MutableSpan<UInt8>) -> Int {
        encoder.encode(frame, into: &packet)
    }

    func decode(_ packet: Span<UInt8>, into frame: inout MutableSpan<Int16>) {
        _ = decoder.decode(packet.bytes, into: &frame)
    }
}

final class Telephone: Codec {
    private var encoder: G711Encoder
    private var decoder: G711Decoder

    init(_ law: G711) {
        encoder = G711Encoder(law)
        decoder = G711Decoder(law)
    }

    func encode(_ frame: Span<Int16>, into packet: inout MutableSpan<UInt8>) -> Int {
        encoder.encode(frame, into: &packet)
    }

    func decode(_ packet: Span<UInt8>, into frame: inout MutableSpan<Int16>) {
        _ = decoder.decode(packet, into: &frame)
    }
}

func spentMicroseconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

let rounds = max(1, CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 3)
let samples = SyntheticVoice.syllables(seconds: 10, seed: 1)
let frames = samples.count / 960

func measure(_ name: String, complexity: Int?, _ make: () throws -> any Codec) throws {
    var (encoding, decoding): ([Double], [Double]) = ([], [])
    for _ in 0..<rounds {
        var codec = try make()
        var packets: [[UInt8]] = []
        var packet = [UInt8](repeating: 0, count: 1_275)
        var frame = [Int16](repeating: 0, count: 960)
        var spent = 0.0
        for start in stride(from: 0, to: frames * 960, by: 960) {
            let before = spentMicroseconds()
            var room = packet.mutableSpan
            let length = codec.encode(samples.span.extracting(start..<(start + 960)), into: &room)
            spent += spentMicroseconds() - before
            packets.append(Array(packet.prefix(length)))
        }
        encoding.append(spent / Double(frames))
        spent = 0
        for packet in packets {
            let before = spentMicroseconds()
            var room = frame.mutableSpan
            codec.decode(packet.span, into: &room)
            spent += spentMicroseconds() - before
        }
        decoding.append(spent / Double(frames))
    }
    let (encode, decode) = ((median(encoding) * 10).rounded() / 10, (median(decoding) * 10).rounded() / 10)
    let level = complexity.map(String.init) ?? "null"
    print("{\"codec\": \"\(name)\", \"complexity\": \(level), \"encode_us\": \(encode), \"decode_us\": \(decode)}")
}

for complexity in [1, 5, 10] { try measure("opus", complexity: complexity) { try Opus(complexity: complexity) } }
try measure("pcmu", complexity: nil) { Telephone(.muLaw) }
try measure("pcma", complexity: nil) { Telephone(.aLaw) }
