internal import Core

/// The times at which a call does something by itself.
struct CallDeadlines {
    /// What becomes due; of several at once in this order.
    enum Event: CaseIterable, Hashable {
        /// The answer policy's delay has passed.
        case answer
        /// The call has had its longest duration.
        case longestDuration
        /// What was still to be heard has been.
        case hangUp
        /// The peer should have sent sound.
        case sound
        /// ICE is restarted, because the peer is silent on all paths.
        case restart
        /// The peer has been silent for too long.
        case loss
        /// The peer has reported nothing of a transfer for too long.
        case transfer
    }

    private var times: [Event: Instant] = [:]

    /// The next time at which something is due; nil for never.
    var next: Instant? { times.values.min() }

    func isSet(_ event: Event) -> Bool { times[event] != nil }

    mutating func set(_ event: Event, at time: Instant) { times[event] = time }

    mutating func clear(_ event: Event) { times[event] = nil }

    mutating func clearAll() { times = [:] }

    /// Takes the earliest of what is due now; nil if nothing is.
    mutating func takeDue(at now: Instant) -> Event? {
        guard let next, next <= now, let event = Event.allCases.first(where: { times[$0] == next }) else { return nil }
        times[event] = nil
        return event
    }
}
