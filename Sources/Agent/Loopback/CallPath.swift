extension CallLoopback {
    /// The parts of a call's delay, from its statistics.
    public struct Path: Equatable, Sendable {
        /// Round trip of the network by RTCP, in milliseconds; nil if none was measured.
        public var networkMilliseconds: Double?
        /// Mean delay of our jitter buffer, in milliseconds.
        public var jitterBufferMilliseconds: Double
        /// Look-ahead of the codec, in milliseconds, each way.
        public var codecMilliseconds: Double
        /// Length of a packet's frame, in milliseconds.
        public var frameMilliseconds: Double
        /// The delay of the call's sound card; nil for a call that plays a file.
        public var card: Card?

        /// The parts of the delay of a call on a sound card that lie on this side.
        public struct Card: Equatable, Sendable {
            /// From the microphone's socket to the frame that is filled, in order.
            public var microphone: [LoopbackRun.Stage]
            /// From the jitter buffer to the loudspeaker's socket, in order.
            public var loudspeaker: [LoopbackRun.Stage]

            /// Says what a card adds.
            public init(microphone: [LoopbackRun.Stage], loudspeaker: [LoopbackRun.Stage]) {
                (self.microphone, self.loudspeaker) = (microphone, loudspeaker)
            }
        }

        /// Says where a call's delay comes from.
        public init(
            networkMilliseconds: Double?, jitterBufferMilliseconds: Double, codecMilliseconds: Double,
            frameMilliseconds: Double, card: Card? = nil
        ) {
            self.networkMilliseconds = networkMilliseconds
            self.jitterBufferMilliseconds = jitterBufferMilliseconds
            self.codecMilliseconds = codecMilliseconds
            self.frameMilliseconds = frameMilliseconds
            self.card = card
        }
    }

    /// Where the sound that was measured came back.
    public enum Ear: Sendable {
        /// Where it had been played: at this end of a call to a device that echoes.
        case here
        /// At the other end of the call, once through it.
        case there
    }
}

extension CallLoopback.Path {
    private typealias Stage = LoopbackRun.Stage

    /// The parts of a delay that was measured; what the statistics do not know of it is the other side's.
    func stages(ofDelay milliseconds: Double, ear: CallLoopback.Ear) -> [LoopbackRun.Stage] {
        let known = known(ear).filter { $0.milliseconds > 0 }
        let rest = milliseconds - known.reduce(0) { $0 + $1.milliseconds }
        if rest > 0 { return known + [Stage(unknown(ear), milliseconds: rest)] }
        // Means over the whole call can be more than the delay was while it was measured; parts never are more than all.
        let all = known.reduce(0) { $0 + $1.milliseconds }
        return all > 0 ? known.map { Stage($0.name, milliseconds: $0.milliseconds * milliseconds / all) } : known
    }

    private func known(_ ear: CallLoopback.Ear) -> [LoopbackRun.Stage] {
        var stages = card?.microphone ?? []
        if card != nil { stages.append(Stage("Frame of a packet, until it is full", milliseconds: frameMilliseconds)) }
        guard ear == .here else {
            stages.append(Stage("Look-ahead of the codec", milliseconds: codecMilliseconds))
            stages.append(Stage("Network, one way", milliseconds: (networkMilliseconds ?? 0) / 2))
            return stages
        }
        stages.append(Stage("Look-ahead of the codec, both ways", milliseconds: 2 * codecMilliseconds))
        stages.append(Stage("Network, there and back", milliseconds: networkMilliseconds ?? 0))
        stages.append(Stage("Jitter buffer here", milliseconds: jitterBufferMilliseconds))
        return stages + (card?.loudspeaker ?? [])
    }

    private func unknown(_ ear: CallLoopback.Ear) -> String {
        switch (card, ear) {
        case (nil, _): "The other side: its jitter buffer, and waiting for the next frame at both ends"
        case (_, .here): "The other side: its jitter buffer, waiting for the next frame; converters and cables"
        case (_, .there): "The other side: its jitter buffer and its card; converters and cables"
        }
    }

    /// The report's statement on mouth-to-ear delay, from a measured delay.
    func mouthToEar(ofDelay milliseconds: Double, ear: CallLoopback.Ear) -> [LoopbackRun.Fact] {
        guard let card else {
            return [
                LoopbackRun.Fact(
                    "Mouth to ear",
                    "\(Self.tenths(milliseconds / 2 + frameMilliseconds)) ms without sound cards: half of the round trip, "
                        + "and \(Int(frameMilliseconds)) ms to fill a frame")
            ]
        }
        let network = (networkMilliseconds ?? 0) / 2
        let sending = card.microphone.reduce(frameMilliseconds) { $0 + $1.milliseconds }
        let receiving = card.loudspeaker.reduce(jitterBufferMilliseconds) { $0 + $1.milliseconds }
        let all = sending + codecMilliseconds + network + receiving
        let told =
            "by the call's statistics, if the other side is like this one: \(Self.tenths(sending)) from microphone to packet, "
            + "\(Self.tenths(codecMilliseconds)) look-ahead of the codec, \(Self.tenths(network)) network, "
            + "\(Self.tenths(receiving)) from packet to loudspeaker"
        return CallLoopback.mouthToEar(ofDelay: milliseconds, ear: ear)
            + [LoopbackRun.Fact("Mouth to ear, as reported", "\(Self.tenths(all)) ms \(told)")]
    }

    fileprivate static func tenths(_ value: Double) -> Double { (value * 10).rounded() / 10 }
}

extension CallLoopback {
    /// The statement on mouth-to-ear delay if only cards have measured it.
    static func mouthToEar(ofDelay milliseconds: Double, ear: Ear) -> [LoopbackRun.Fact] {
        switch ear {
        case .here:
            let half = Path.tenths(milliseconds / 2)
            return [
                LoopbackRun.Fact(
                    "Half of the round trip",
                    "\(half) ms: mouth to ear, if the other side echoes through a card as well")
            ]
        case .there: return [LoopbackRun.Fact("Mouth to ear", "\(Path.tenths(milliseconds)) ms, measured")]
        }
    }
}
