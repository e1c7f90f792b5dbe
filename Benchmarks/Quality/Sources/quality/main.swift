import AudioKit
import Foundation
import LoopbackAnalysis

// quality                  reads lines of "REFERENCE<tab>DEGRADED", WAV files, and answers each with a JSON object
// quality --make FILE      writes the synthetic voices that `handset loopback call` plays

func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data("quality: \(message)\n".utf8))
    exit(1)
}

func number(_ value: Double?) -> String { value.map { "\($0)" } ?? "null" }

let arguments = CommandLine.arguments.dropFirst()
do {
    if arguments.count == 2, arguments.first == "--make", let path = arguments.last {
        var speaker = SyntheticSpeech()
        var writer = try WAVWriter(path: path)
        try writer.append(speaker.samples(seconds: 9).span)
        try writer.finish()
        exit(0)
    }
    guard arguments.isEmpty else { fail("usage: quality < PAIRS, or quality --make FILE") }
    while let line = readLine() {
        let paths = line.split(separator: "\t").map(String.init)
        guard paths.count == 2 else { fail("\"\(line)\" is not two files with a tab between") }
        let reference = try AudioFileReader.samples(ofFile: paths[0])
        let degraded = try AudioFileReader.samples(ofFile: paths[1])
        let found = SpeechQualityAnalysis().compare(reference: reference, degraded: degraded)
        print(
            """
            {"quality": \(number(found?.score)), "symmetric": \(number(found?.disturbance)), \
            "asymmetric": \(number(found?.addedDisturbance)), "changes": \(found?.delayChanges ?? 0)}
            """)
    }
} catch {
    fail("\(error)")
}
