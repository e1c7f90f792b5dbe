import AudioKit
import Foundation
import TestSupport

/// How long a sine of the amplitude is in a recording, in seconds, by its energy.
///
/// Waits until the recording is whole: a call's end waits 2 s for its files, and a busy disk may take longer.
func secondsOfTone(in path: String, amplitude: Double = 8_000) async throws -> Double {
    try await until { FileManager.default.fileExists(atPath: path) }
    let energy = try AudioFileReader.samples(ofFile: path).reduce(0) { $0 + Double($1) * Double($1) }
    return energy / (amplitude * amplitude / 2) / Double(AudioFormat.sampleRate)
}

/// The amplitude of a tone in a half second of a recording, which ends `end` seconds before its own end.
///
/// Waits until the recording is whole.
func toneAmplitude(_ hertz: Double, in path: String, before end: Double = 0.2) async throws -> Double {
    try await until { FileManager.default.fileExists(atPath: path) }
    let samples = try AudioFileReader.samples(ofFile: path).dropLast(Int(end * 48_000)).suffix(24_000)
    var (x, y) = (0.0, 0.0)
    for (index, sample) in samples.enumerated() {
        let angle = 2 * Double.pi * hertz * Double(index) / 48_000
        x += Double(sample) * cos(angle)
        y += Double(sample) * sin(angle)
    }
    return 2 * (x * x + y * y).squareRoot() / Double(max(1, samples.count))
}

/// Writes a WAV file with a tone of an amplitude of 8,000.
func writeTone(_ hertz: Double, seconds: Double, to path: String) throws {
    let samples = (0..<Int(seconds * 48_000)).map { Int16(8_000 * sin(2 * .pi * hertz * Double($0) / 48_000)) }
    var writer = try WAVWriter(path: path)
    try writer.append(samples.span)
    try writer.finish()
}
