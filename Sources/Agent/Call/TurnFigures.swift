internal import CallParticipation
internal import Core
internal import VoiceActivity

/// How turns were taken in a call, by all programs that took part in it, one after the other.
struct TurnFigures: Equatable, Sendable {
    /// Of those that have left.
    private var earlier: TurnSummary?
    /// Of the one that takes part.
    private var current: TurnSummary?
    /// Its kind; nil if none takes part.
    private var kind: ParticipantKind?
    /// All reported response times; none before the first. An array, so that calls without programs carry nothing of it.
    private var times: [ResponseTimes] = []

    /// No program takes part.
    init() {}

    /// Notes the figures so far of the participant.
    mutating func note(_ summary: TurnSummary, from kind: ParticipantKind) {
        // Each kind reports on a thread of its own: one that has left may report that after the next has begun.
        if kind != self.kind { leave() }
        self.kind = kind
        current = summary
    }

    /// The program has answered.
    mutating func noteResponse(_ time: Duration) {
        if times.isEmpty { times = [ResponseTimes(rateHz: 48_000)] }
        times[0].add(Int((time.seconds * 48_000).rounded()))
    }

    /// The participant of this kind has left the call.
    mutating func leave(_ kind: ParticipantKind) { if kind == self.kind { leave() } }

    private mutating func leave() {
        earlier = summary
        current = nil
        kind = nil
    }

    /// The figures of all; nil if nothing was followed.
    var summary: TurnSummary? {
        guard let earlier else { return current }
        return current.map { earlier.adding($0, times.first ?? ResponseTimes(rateHz: 48_000)) } ?? earlier
    }
}
