internal import RTP
public import Timekeeping

// Packets that are lost and sent again (RFC 4585 §6.2.1): asked for by us, and by the peer.
extension PeerSession {
    /// Whether the peer can ask us to send packets again that it misses.
    public var resendsPackets: Bool {
        @_noAllocation @_noLocks get { sender.keepsPackets }
    }

    /// Whether both ask for packets that they miss, and send them again.
    public var repairsLoss: Bool {
        @_noAllocation @_noLocks get { sender.formats.repairsLoss }
    }

    /// How long after we ask for a packet it comes; nil while that is not known, or if the peer does not answer.
    @_noAllocation @_noLocks
    public mutating func repairNanoseconds(at now: Instant) -> Int64? {
        guard sender.formats.repairsLoss, requests.isAnswered(at: now) else { return nil }
        let roundTrip = roundTripNanoseconds
        return requests.answerNanoseconds(roundTrip: roundTrip)
    }

    /// Asks for a packet of the peer's with the next ``writeRequests(into:)``, if it can come in time. To be called in the
    /// order of the numbers.
    ///
    /// - Parameter nanosecondsLeft: Until it must be there.
    /// - Returns: Whether it is asked for.
    @_noAllocation @_noLocks
    public mutating func ask(for number: UInt16, nanosecondsLeft: Int64, at now: Instant) -> Bool {
        guard sender.formats.repairsLoss, let media = remoteSSRC else { return false }
        let roundTrip = roundTripNanoseconds
        guard requests.ask(for: number, nanosecondsLeft: nanosecondsLeft, roundTrip: roundTrip, at: now)
        else { return false }
        if missing.isEmpty { missing = NegativeAcknowledgement(sender: plan.localSSRC, media: media) }
        guard missing.append(number) else { return false }
        counters.feedback.packetsRequested += 1
        return true
    }

    /// Writes the request for the packets that ``ask(for:nanosecondsLeft:at:)`` has gathered, protected.
    ///
    /// - Returns: The datagram's length; 0 if nothing is asked for.
    @_noAllocation @_noLocks
    public mutating func writeRequests(into packet: inout MutableRawSpan) -> Int {
        guard !missing.isEmpty else { return 0 }
        let start = reporter.writeFront(isReducedSize: sender.formats.usesReducedSizeRTCP, into: &packet)
        var rest = packet._mutatingExtracting(start...)
        let length = missing.write(into: &rest)
        missing = NegativeAcknowledgement(sender: plan.localSSRC, media: 0)
        guard length > 0 else { return 0 }
        return protectControl(&packet, start + length)
    }

    /// Writes the next packet of ours that the peer has asked for and that may be sent again, as it was sent before.
    ///
    /// - Returns: The packet's length; 0 if there is none.
    @_noAllocation @_noLocks
    public mutating func writeRepair(at now: Instant, into packet: inout MutableRawSpan) -> Int {
        guard sender.formats.repairsLoss else { return 0 }
        let roundTrip = roundTripNanoseconds
        while let number = reporter.takeAsked() {
            let length = sender.writeAgain(number, roundTrip: roundTrip, at: now, into: &packet)
            if length > 0 {
                counters.feedback.packetsResent += 1
                return length
            }
            counters.feedback.packetsNotResent += 1
        }
        return 0
    }
}
