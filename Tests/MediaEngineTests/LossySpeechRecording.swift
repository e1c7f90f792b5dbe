import AudioKit
import Foundation
import Playout
import TestSupport
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

/// Writes what is heard of speech over paths that lose packets, for measures of quality outside of this package.
///
/// `HANDSET_LOSSY_SPEECH=FOLDER` has `said.wav` (48 kHz, mono, up to 80 s) said and writes `KIND-LOSS-SEED.wav` beside it;
/// Benchmarks/Quality/lossy.py makes a table of them.
@Suite("Speech over paths that lose packets, for listening to")
struct LossySpeechRecording {
    private static let folder = ProcessInfo.processInfo.environment["HANDSET_LOSSY_SPEECH"]

    private static let losses: [(name: String, loss: NetworkProfile.Loss)] = [
        ("none", .none), ("random3", .independent(share: 0.03)), ("random10", .independent(share: 0.1)),
        ("bursts5", .bursts(share: 0.05, meanLength: 2)), ("bursts10", .bursts(share: 0.1, meanLength: 3)),
    ]

    /// What two Handset devices agree on, and less.
    private static let kinds: [(name: String, repairs: Bool, copies: Bool)] = [
        ("shipped", true, true), ("repairs", true, false), ("copies", false, true), ("fec", false, false),
    ]

    @Test("What is heard is written", .enabled(if: folder != nil))
    func record() throws {
        let folder = try #require(Self.folder)
        let said = try AudioFileReader.samples(ofFile: folder + "/said.wav")
        let seeds = UInt64(ProcessInfo.processInfo.environment["HANDSET_LOSSY_SEEDS"] ?? "2") ?? 2
        for kind in Self.kinds {
            for (name, loss) in Self.losses {
                for seed in 1...seeds {
                    let path = VirtualPath(loss, seed: seed, delay: .milliseconds(30))
                    var call = try VirtualCall(voice: said) { plan in
                        plan.peer.repairsLoss = kind.repairs
                        plan.peer.usesReducedSizeRTCP = true
                        if kind.copies {
                            plan.peer.redundancy = RedundancyFormat(sendPayloadType: 63, receivePayloadType: 63)
                        }
                        plan.peer.headerExtensions.transportSequenceIdentifier = 3
                        plan.peer.headerExtensions.remoteTransportSequenceIdentifier = 3
                        plan.encoder.bitrateBps = 40_000
                        plan.encoder.expectedLossPercent = 5
                        plan.encoder.complexity = 5
                    }
                    call.path = path.arrival
                    call.readsLikeWorker = true
                    call.turn = .milliseconds(1)
                    try call.run(seconds: Double(said.count) / 48_000 + 1)
                    var writer = try WAVWriter(path: folder + "/\(kind.name)-\(name)-\(seed).wav")
                    try writer.append(call.takeHeard().span)
                    try writer.finish()
                    let (left, right) = call.reports
                    let control = call.left.pointee.control
                    print(
                        kind.name, name, seed, "lost", path.lost, "of", path.sent, "bitrate", control.bitrateBps,
                        "resent", left.peer.feedback.packetsResent, "repaired",
                        right.peer.feedback.packetsRepaired, "copies", right.playout.packetsRepaired, "concealed ms",
                        right.playout.samplesConcealed / 48, "recovered ms", right.playout.samplesRecovered / 48,
                        "delay ms", right.playout.meanBufferDelayNanoseconds / 1_000_000, "kb/s",
                        left.peer.payloadBytesSent * 8 / max(said.count / 48, 1))
                }
            }
        }
    }
}
