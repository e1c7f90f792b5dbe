internal import Core
internal import RTP

/// Asks the peer for packets that are lost (RFC 4585 §6.2.1), and finds out how long it takes to send them.
struct RepairRequests: ~Copyable {
    private let inPlace = InPlace()
    private let ssrc: UInt32
    private var requests = RetransmissionRequests()
    /// What the next request asks for.
    private var missing: NegativeAcknowledgement

    init(ssrc: UInt32) {
        self.ssrc = ssrc
        missing = NegativeAcknowledgement(sender: ssrc, media: 0)
    }

    /// Whether there is something to ask for.
    var isEmpty: Bool {
        @_noAllocation @_noLocks mutating get { missing.isEmpty }
    }

    /// How long after a request its packet comes; nil while that is not known, or if the peer does not answer.
    @_noAllocation @_noLocks
    mutating func answerNanoseconds(roundTrip: Int64?, at now: Instant) -> Int64? {
        guard requests.isAnswered(at: now) else { return nil }
        return requests.answerNanoseconds(roundTrip: roundTrip)
    }

    /// A packet has been accepted.
    ///
    /// - Returns: Whether it comes because it was asked for.
    @_noAllocation @_noLocks
    mutating func received(_ number: UInt16, roundTrip: Int64?, at arrival: Instant) -> Bool {
        requests.received(number, roundTrip: roundTrip, at: arrival)
    }

    /// Asks for a packet with the next ``write(into:)``, if it can come in time. To be called in the order of the numbers.
    ///
    /// - Parameters:
    ///   - media: The stream that it is of.
    ///   - nanosecondsLeft: Until it must be there.
    /// - Returns: Whether it is asked for.
    @_noAllocation @_noLocks
    mutating func ask(
        for number: UInt16, of media: UInt32, nanosecondsLeft: Int64, roundTrip: Int64?, at now: Instant
    ) -> Bool {
        guard requests.ask(for: number, nanosecondsLeft: nanosecondsLeft, roundTrip: roundTrip, at: now)
        else { return false }
        if missing.isEmpty { missing = NegativeAcknowledgement(sender: ssrc, media: media) }
        return missing.append(number)
    }

    /// Writes the request for all packets that were asked for.
    ///
    /// - Returns: Its length; 0 if it could not be written.
    @_noAllocation @_noLocks
    mutating func write(into packet: inout MutableRawSpan) -> Int {
        let length = missing.write(into: &packet)
        missing = NegativeAcknowledgement(sender: ssrc, media: 0)
        return length
    }
}
