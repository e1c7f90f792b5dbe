import AudioKit
import Foundation
import LoopbackAnalysis

/// A file of a synthetic voice that begins after a pause.
struct SpokenFile {
    let path = FileManager.default.temporaryDirectory.appending(path: "handset-spoken-\(UUID()).wav").path()

    init(pauseSeconds: Double, seconds: Double = 2) throws {
        var speaker = SyntheticSpeech(seed: 31, levelDBFS: -24)
        let samples = [Int16](repeating: 0, count: Int(pauseSeconds * 48_000)) + speaker.samples(seconds: seconds)
        var writer = try WAVWriter(path: path)
        try writer.append(samples.span)
        try writer.finish()
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
