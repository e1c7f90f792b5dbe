internal import Core

/// Addresses of a server that failed lately; other addresses are tried before them (RFC 3263 §4.3).
struct TargetAvoidance: Sendable {
    /// How long an address is tried last.
    static let duration = Duration.seconds(120)
    /// Addresses that are remembered; with more, the one that expires first is dropped.
    static let capacity = ServerLocator.mostTargets

    private var until: [SIPTarget: Instant] = [:]

    mutating func avoid(_ target: SIPTarget, at now: Instant) {
        if until.count >= Self.capacity, let oldest = until.min(by: { $0.value < $1.value })?.key {
            until[oldest] = nil
        }
        until[target] = now.advanced(by: Self.duration)
    }

    /// It works.
    mutating func forgive(_ target: SIPTarget) { until[target] = nil }

    /// The same addresses, those to be avoided at the end; otherwise in their order.
    mutating func ordered(_ targets: [SIPTarget], at now: Instant) -> [SIPTarget] {
        until = until.filter { $0.value > now }
        return targets.filter { until[$0] == nil } + targets.filter { until[$0] != nil }
    }
}
