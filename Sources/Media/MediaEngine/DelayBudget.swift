public import AudioDevices
public import CallMedia
internal import Playout

/// Where a call's delay comes from, stage by stage, as far as this end knows it, in milliseconds.
///
/// From mouth to ear, a voice passes the first group here, the network, and the second group at the peer; or the other
/// way round. So the sum of both groups and the network is the delay of a call whose peer is like us.
public struct DelayBudget: Equatable, Sendable {
    /// A stage and its delay.
    public struct Stage: Equatable, Sendable {
        /// For programs: words joined by `_`.
        public let name: String
        /// Its delay, in milliseconds.
        public let milliseconds: Double
    }

    /// From the microphone to the network.
    public var sending: [Stage] = []
    /// Half of the round trip measured by RTCP.
    public var networkMilliseconds = 0.0
    /// From the network to the loudspeaker.
    public var receiving: [Stage] = []

    /// All of it.
    public var totalMilliseconds: Double {
        networkMilliseconds + (sending + receiving).reduce(0) { $0 + $1.milliseconds }
    }

    /// - Parameters:
    ///   - report: The call's.
    ///   - card: The card's, if it has one.
    public init(_ report: MediaReport, card: CardStatistics?) {
        if let line = card?.capture {
            add("capture_behind_card", line.behindCardMilliseconds, to: &sending)
            add("capture_card", line.cardMilliseconds, to: &sending)
            add("capture_resampler", line.resamplerMilliseconds, to: &sending)
            add("capture_ring", line.ringMilliseconds, to: &sending)
        }
        // Its preprocessor's frames of 10 ms overlap.
        if let sound = report.sound { add("speakerphone", Double(sound.processingSamples) / 48, to: &sending) }
        add("frame", Double(report.frameSamples) / 48, to: &sending)
        // Opus: 2.5 ms of overlap, and 4 ms to line up its two halves (RFC 6716 §2, with 2.7). G.711: its filters.
        add("encoder", Double(report.encoderDelaySamples) / 48, to: &sending)
        networkMilliseconds = Double(report.peer.roundTripNanoseconds) / 2e6
        add("jitter_buffer", Double(report.playout.meanBufferDelayNanoseconds) / 1e6, to: &receiving)
        add("decoder", Double(report.decoderDelaySamples) / 48, to: &receiving)
        if let line = card?.playback {
            add("playback_ring", line.ringMilliseconds, to: &receiving)
            add("playback_resampler", line.resamplerMilliseconds, to: &receiving)
            add("playback_card", line.cardMilliseconds, to: &receiving)
            add("playback_behind_card", line.behindCardMilliseconds, to: &receiving)
        }
    }

    private func add(_ name: String, _ milliseconds: Double, to stages: inout [Stage]) {
        stages.append(Stage(name: name, milliseconds: milliseconds))
    }
}
