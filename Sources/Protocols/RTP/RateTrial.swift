internal import Core

/// Distinguishes loss by congestion, which falls when less is sent, from random loss, which does not.
///
/// A sequential test of two hypotheses over the packets that were sent since the bitrate was lowered: that they are
/// lost at the same rate as before, or as on a path that carries as much as before. A burst counts as at most two
/// packets, because one burst proves little. Random loss is accepted only after two feedbacks with loss, or a report on
/// a hundred packets.
struct RateTrial: Equatable, Sendable, BitwiseCopyable {
    enum Verdict: Equatable, Sendable, BitwiseCopyable {
        /// Loss does not depend on the bitrate.
        case constant
        /// Loss falls with the bitrate.
        case congestion
    }

    /// The earlier sending rate; whether frames were sent twice and that has stopped; and whether they still are.
    let bitrateBps: Int
    let sendsTwice: Bool
    let keepsTwice: Bool
    /// Loss before: 0…1.
    private(set) var loss: Double
    private let lossIfCongested: Double
    private let startedAt: Instant
    /// Positive for chance: the logarithm of the ratio of likelihoods.
    private var score = 0.0
    private var packets = 0
    private var lost = 0
    private var feedbacksWithLoss = 0

    /// Log of the likelihood ratio that decides for one hypothesis: e³ ≈ 20 times as likely.
    private static var decision: Double { @_noAllocation @_noLocks get { 3 } }
    /// Congestion is not accepted sooner: three seconds, because the bursts of a path with random loss have pauses too.
    private static var leastPackets: Int { @_noAllocation @_noLocks get { 150 } }

    @_noAllocation @_noLocks
    init(
        bitrateBps: Int, sendsTwice: Bool, keepsTwice: Bool, loss: Double, lossIfCongested: Double, at now: Instant
    ) {
        self.bitrateBps = bitrateBps
        self.sendsTwice = sendsTwice
        self.keepsTwice = keepsTwice
        self.loss = min(loss, 0.95)
        self.lossIfCongested = min(lossIfCongested, 0.9)
        startedAt = now
    }

    /// Loss since the bitrate was lowered.
    var lossSeen: Double { @_noAllocation @_noLocks get { Double(lost) / Double(max(packets, 1)) } }

    /// Takes feedback.
    ///
    /// - Returns: The verdict once there is one.
    @_noAllocation @_noLocks
    mutating func observe(_ seen: PathObservation) -> Verdict? {
        guard startedAt.nanoseconds(to: seen.oldestSentAt) >= 0 else { return nil }
        packets += seen.packets
        lost += seen.lost
        let isReport = seen.packets >= 100
        if seen.lost > 0 { feedbacksWithLoss += isReport ? 2 : 1 }
        // If the path carries less than the minimum bitrate, the two can hardly be distinguished.
        guard loss > lossIfCongested * 1.3 else { return packets >= Self.leastPackets ? .congestion : nil }
        score += Double(min(seen.lost, max(2, seen.packets / 5))) * Self.logarithm(loss / lossIfCongested)
        score += Double(seen.received) * Self.logarithm((1 - loss) / (1 - lossIfCongested))
        if score >= Self.decision, feedbacksWithLoss >= 2 { return .constant }
        if score <= -Self.decision, packets >= Self.leastPackets { return .congestion }
        // After twice the minimum number of packets, the likelier hypothesis wins.
        guard packets >= 2 * Self.leastPackets else { return nil }
        return score > 0 ? .constant : .congestion
    }

    /// The natural logarithm of a number above 0, within 1 %; the C library's is not to be called from the media thread's
    /// functions.
    @_noAllocation @_noLocks
    private static func logarithm(_ x: Double) -> Double {
        // x = m·2ⁿ with m in 0.7…1.4; then ln m = 2·(t + t³/3 + t⁵/5), t = (m − 1) / (m + 1).
        var (m, n) = (max(x, 1e-9), 0.0)
        while m > 1.4 { (m, n) = (m / 2, n + 1) }
        while m < 0.7 { (m, n) = (m * 2, n - 1) }
        let t = (m - 1) / (m + 1)
        return 2 * (t + t * t * t / 3 + t * t * t * t * t / 5) + n * 0.693_147_180_56
    }
}
