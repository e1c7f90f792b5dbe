internal import Core
internal import VoiceActivity

/// How turns were taken in a call, by all programs that took part in it, one after the other.
struct TurnFigures: Equatable, Sendable {
    /// Of those that have left.
    private var earlier: TurnSummary?
    /// Of the one that takes part.
    private var current: TurnSummary?
    /// Which port that is; nil for a program or bot, which says when it leaves.
    private var port: UInt64?
    /// The last port that has left; 0 before the first.
    private var lastPort: UInt64 = 0
    /// All response times that were told; none before the first. An array, so that calls without programs carry nothing of it.
    private var times: [ResponseTimes] = []

    /// No program takes part.
    init() {}

    /// The figures so far of who takes part.
    ///
    /// - Parameter port: The number of the port; nil for a program or bot.
    mutating func note(_ summary: TurnSummary, port: UInt64? = nil) {
        if port != self.port {
            // What is left to be told of an earlier port is in the figures already, but for its very last word.
            if let port, port <= lastPort { return }
            leave()
            self.port = port
        }
        current = summary
    }

    /// The program has answered.
    mutating func noteResponse(_ time: Duration) {
        if times.isEmpty { times = [ResponseTimes(rateHz: 48_000)] }
        times[0].add(Int((time.seconds * 48_000).rounded()))
    }

    /// Who took part has left the call.
    mutating func leave() {
        earlier = summary
        current = nil
        lastPort = port ?? lastPort
        port = nil
    }

    /// The figures of all; nil if nothing was followed.
    var summary: TurnSummary? {
        guard let earlier else { return current }
        return current.map { earlier.adding($0, times.first ?? ResponseTimes(rateHz: 48_000)) } ?? earlier
    }
}
