import AudioKit

/// A player that keeps one delay from first to last: what a buffer could do that knew the path beforehand and never
/// had to adapt. It conceals what comes later, restores with FEC what its delay gives time for, and every packet that
/// comes a little too late still puts its decoder right.
struct ConstantDelay {
    /// Sound concealed or restored, as a share of all.
    private(set) var missedShare = 0.0
    private(set) var output: [Int16] = []

    private static let packetMs = 20.0

    /// Plays with the delay that adds `added` ms on the mean to the packets that it plays.
    ///
    /// - Parameter transits: For each packet that arrives at all, its arrival minus its media time, in milliseconds.
    init(_ packets: [[UInt8]], transits: [Int: Double], added: Double) throws {
        let limit = Self.limit(transits.values.sorted(), added: added)
        func isThere(_ index: Int, within patience: Double) -> Bool { transits[index].map { $0 <= patience } ?? false }
        var decoder = try OpusDecoder()
        var missed = 0
        for index in packets.indices {
            var frame = [Int16](repeating: 0, count: 960)
            var span = frame.mutableSpan
            let packet = packets[index]
            let following = index + 1 < packets.count ? packets[index + 1] : []
            if isThere(index, within: limit) {
                _ = decoder.decode(packet.span.bytes, into: &span)
            } else if isThere(index + 1, within: limit - Self.packetMs), OpusPacket.hasFEC(following.span.bytes) {
                missed += 1
                _ = decoder.recoverFEC(fromNext: following.span.bytes, samples: 960, into: &span)
            } else {
                missed += 1
                let comesLate = isThere(index, within: limit + Self.packetMs)
                if comesLate { decoder.save() }
                _ = decoder.conceal(samples: 960, into: &span)
                if comesLate { Self.takeBack(&decoder, packet) }
            }
            output += frame
        }
        missedShare = Double(missed) / Double(max(packets.count, 1))
    }

    private static func takeBack(_ decoder: inout OpusDecoder, _ packet: [UInt8]) {
        decoder.restore()
        var unheard = [Int16](repeating: 0, count: 960)
        var span = unheard.mutableSpan
        _ = decoder.decode(packet.span.bytes, into: &span)
    }

    /// The transit up to which packets are in time, such that those wait `added` on the mean.
    private static func limit(_ sorted: [Double], added: Double) -> Double {
        var sum = 0.0
        for (index, transit) in sorted.enumerated() {
            // With the limit at this packet's own transit, those before it wait so long on the mean:
            if Double(index) * transit - sum >= added * Double(index + 1) {
                return (added * Double(index) + sum) / Double(max(index, 1))
            }
            sum += transit
        }
        return (sum + added * Double(sorted.count)) / Double(max(sorted.count, 1))
    }
}
