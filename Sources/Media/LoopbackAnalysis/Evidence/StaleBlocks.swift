internal import AudioKit

/// Counts disturbances that are carrier from elsewhere: a buffer that was heard again in place of the next one.
struct StaleBlocks {
    /// Shorter ones are not told from others, and of longer ones the beginning will do.
    private static let least = 96
    private static let most = 960
    /// How far from its place the carrier is looked for: 200 ms.
    private static let reach = 9_600
    /// Disturbances that are looked at.
    private static let tried = 8

    /// - Returns: Of the first few disturbances those that are carrier, extrapolated to all.
    static func count(_ events: [LoopbackEvent], _ captured: [Int16], _ carrier: Carrier) -> Int {
        let candidates = events.filter { $0.kind == .disturbance && $0.holeSamples >= least }
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
        let playedEnergy = dotProduct(played, best, played, best, heard.count)
        return abs(sums[best]) > 0.7 * (energy * playedEnergy).squareRoot()
    }
}
