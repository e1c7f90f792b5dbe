import FoundationEssentials
import SecureTransport

/// How long it took from sending an invite until its answer, and until media flowed both ways.
struct SetUpReport {
    fileprivate(set) var answered: [Duration] = []
    fileprivate(set) var flowing: [Duration] = []

    var json: String {
        let members = [
            ("p50_ms", Self.quantile(0.5, of: flowing)), ("p99_ms", Self.quantile(0.99, of: flowing)),
            ("most_ms", flowing.max()), ("answer_p50_ms", Self.quantile(0.5, of: answered)),
            ("answer_p99_ms", Self.quantile(0.99, of: answered)),
        ].map { name, duration in "\"\(name)\": \(Self.milliseconds(duration ?? .zero))" }
        return "{\"calls\": \(flowing.count), " + members.joined(separator: ", ") + "}"
    }

    /// The smallest value that at least a share `share` of all does not exceed.
    private static func quantile(_ share: Double, of durations: [Duration]) -> Duration? {
        let rank = Int((share * Double(durations.count)).rounded(.up))
        return rank > 0 ? durations.sorted()[rank - 1] : nil
    }

    /// To a hundredth.
    private static func milliseconds(_ duration: Duration) -> Double {
        (duration / .milliseconds(1) * 100).rounded() / 100
    }
}

/// Places `count` calls one after the other.
func measureSetUp(_ count: Int, _ suite: SRTPSuite, _ caller: Caller) async throws -> SetUpReport {
    var report = SetUpReport()
    for _ in 0..<count {
        let end = try LocalEnd(suite)
        let begun = ContinuousClock.now
        let (invite, remote) = try await caller.place(end)
        let answered = begun.duration(to: .now)
        try exchangeFirstPackets(end, remote)
        let flowing = begun.duration(to: .now)
        report.answered.append(answered)
        report.flowing.append(flowing)
        try await caller.hangUp(invite, after: begun.duration(to: .now))
    }
    return report
}
