import TestSupport

/// One row of the benchmark: a path, and how the sender is set for it.
struct Profile {
    var name: String
    var network: NetworkProfile
    /// Loss that the sender has been told of; 0 sends no FEC.
    var expectedLossPercent = 0

    static let all: [Profile] = [
        Profile(name: "clean", network: .with { _ in }),
        Profile(name: "wifi", network: .with { $0.jitter = .wifi(meanMilliseconds: 17) }),
        Profile(name: "lte", network: .with { $0.jitter = .lte(meanMilliseconds: 37) }),
        Profile(
            name: "loss10", network: .with { $0.loss = .bursts(share: 0.1, meanLength: 2) }, expectedLossPercent: 10),
        Profile(
            name: "loss30", network: .with { $0.loss = .bursts(share: 0.3, meanLength: 2.5) },
            expectedLossPercent: 20),
        Profile(
            name: "stalls",
            network: .with {
                $0.stallEveryMilliseconds = 5_000
                $0.stallMilliseconds = 200
            }),
        Profile(name: "reorder", network: .with { $0.reorderedShare = 0.05 }),
        Profile(name: "drift+", network: .with { $0.clockDriftPPM = 300 }),
        Profile(name: "drift-", network: .with { $0.clockDriftPPM = -300 }),
        Profile(name: "loss1.4", network: .with { $0.loss = .independent(share: 0.014) }),
        Profile(name: "drift-1500", network: .with { $0.clockDriftPPM = -1500 }),
        Profile(name: "exp17", network: .with { $0.jitter = .exponential(meanMilliseconds: 17) }),
        Profile(
            name: "wifi+loss",
            network: .with {
                $0.jitter = .wifi(meanMilliseconds: 12)
                $0.loss = .bursts(share: 0.05, meanLength: 1.5)
            }, expectedLossPercent: 10),
    ]
}
