// jitter: plays recorded speech over simulated paths, and says what delay and what damage the jitter buffer adds.

import Foundation
import Playout

var options = Options(CommandLine.arguments.dropFirst())
let speech = try Speech(options)
var encoded: [Int: [[UInt8]]] = [:]
for profile in Profile.all where encoded[profile.expectedLossPercent] == nil {
    encoded[profile.expectedLossPercent] = try speech.packets(expectedLossPercent: profile.expectedLossPercent)
}
if let directory = options.wavs {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    for (loss, packets) in encoded {
        let clean = try Run.decodeUnlimited(packets, received: Set(packets.indices))
        try WideBand.write(clean, to: "\(directory)/clean-\(loss).wav")
    }
}

var report = Report()
for profile in Profile.all where options.profiles.isEmpty || options.profiles.contains(profile.name) {
    var runs: [Run] = []
    for seed in options.seeds {
        let run = try Run(
            profile, encoded[profile.expectedLossPercent] ?? [], seed: seed, options: options)
        if let directory = options.wavs {
            for (kind, samples) in [("out", run.output), ("unlimited", run.unlimited), ("constant", run.constant)] {
                let name = "\(profile.name)-\(seed).\(kind)-\(profile.expectedLossPercent).wav"
                try WideBand.write(samples, to: directory + "/" + name)
            }
        }
        runs.append(run)
    }
    report.add(profile.name, runs)
}
print(options.json ? report.json : report.table)
