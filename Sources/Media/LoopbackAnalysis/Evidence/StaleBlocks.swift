internal import AudioKit

/// Counts disturbances that are carrier from elsewhere: a buffer that was heard again in place of the next one.
struct StaleBlocks {
    /// Shorter blocks cannot be distinguished from other sound; of longer ones the beginning is compared.
    private static let least = 96
    private static let most = 960
    /// How far from its place the carrier is looked for: 200 ms.
    private static let reach = 9_600
    /// Disturbances that are looked at.
    private static let tried = 8
    /// Carrier so near its place is in its place: 0.5 ms.
    private static let near = 24

    /// - Returns: Of the first few disturbances those that are carrier, extrapolated to all; and the pairs of jumps of which
    ///   one takes back the other within about the time that it jumps.
    static func count(_ events: [LoopbackEvent], _ captured: [Int16], _ carrier: Carrier) -> Int {
        pairs(events) + replaced(events, captured, carrier)
    }

    private static func pairs(_ events: [LoopbackEvent]) -> Int {
        var count = 0
        var index = 0
        while index + 1 < events.count {
            let (first, second) = (events[index], events[index + 1])
            let (out, back) = (first.delayAfter - first.delayBefore, second.delayAfter - second.delayBefore)
            let length = second.position - first.position
            let isPair = abs(out) > Double(near) && abs(out + back) < 3 && length <= Int(abs(out)) + 2 * most
            if isPair { count += 1 }
            index += isPair ? 2 : 1
        }
        return count
    }

    private static func replaced(_ events: [LoopbackEvent], _ captured: [Int16], _ carrier: Carrier) -> Int {
        let candidates = events.filter {
            $0.kind == .disturbance && $0.holeSamples >= least && abs($0.delayAfter - $0.delayBefore) < 0.5
        }
        let looked = candidates.prefix(tried)
        guard !looked.isEmpty else { return 0 }
        let transform = FourierTransform(minimumCount: 2 * reach + 2 * most)
        let stale = looked.count { isCarrier($0, captured, carrier, transform) }
        return stale * candidates.count / looked.count
    }

    private static func isCarrier(
        _ event: LoopbackEvent, _ captured: [Int16], _ carrier: Carrier, _ transform: FourierTransform
    ) -> Bool {
        let hole = (event.position..<event.position + min(event.holeSamples, most)).clamped(to: 0..<captured.count)
        let heard = captured[hole].map(Float.init)
        let energy = dotProduct(heard, 0, heard, 0, heard.count)
        guard heard.count >= least, energy > Float(heard.count) else { return false }
        let first = hole.lowerBound - Int(event.delayBefore) - reach
        let played = carrier.samples(first..<first + 2 * reach + heard.count)
        let sums = transform.correlate(heard[...], played[...])
        guard let best = (0..<2 * reach).max(by: { abs(sums[$0]) < abs(sums[$1]) }) else { return false }
        guard abs(best - reach) > near else { return false }
        let playedEnergy = dotProduct(played, best, played, best, heard.count)
        return abs(sums[best]) > 0.7 * (energy * playedEnergy).squareRoot()
    }
}
