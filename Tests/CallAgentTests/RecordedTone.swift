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
