public import Core

/// Decides when a stream must stop because the network can no longer carry it (RFC 8083 §4).
///
/// A last resort: it trips only if ten times the fair rate is sent, or nothing arrives at all, and it stays tripped.
/// Its inputs are sent packets and each report on our stream.
public struct CircuitBreaker: Equatable, Sendable {
    /// Why to stop.
    public enum Trip: Equatable, Sendable {
        /// No report came for three intervals (§4.1).
        case reportsMissing
        /// Reports arrive, and report that no packet arrives (§4.2).
        case mediaNotArriving
        /// Loss and round trip leave room for less than a tenth of what is sent (§4.3).
        case congestion
    }

    /// Properties of the stream that are known before it begins.
    public struct Configuration: Equatable, Sendable {
        /// Time between two reports before it is randomised (RFC 3550 §6.3.1), in nanoseconds.
        public var reportIntervalNanoseconds: Int64
        /// Duration of media in one packet, in nanoseconds.
        public var packetNanoseconds: Int64
        /// Whether missing reports trip it. Peers that never send any, such as some telephones, need `false`.
        public var needsReports: Bool

        /// Makes a configuration for packets of 20 ms and reports every 5 s.
        @_noAllocation @_noLocks
        public init(reportIntervalNanoseconds: Int64 = 5_000_000_000, packetNanoseconds: Int64 = 20_000_000) {
            self.reportIntervalNanoseconds = max(100_000_000, reportIntervalNanoseconds)
            self.packetNanoseconds = max(1_000_000, packetNanoseconds)
            needsReports = true
        }
    }

    /// One report on our stream, and how we sent in the time that it covers.
    public struct Interval: Equatable, Sendable {
        /// ``ReportBlock/extendedHighestSequence``.
        public var highestSequence: UInt32
        /// ``ReportBlock/fractionLost``, in 1/256.
        public var fractionLost: UInt8
        /// The newest round trip, in nanoseconds; `nil` if none was measured yet.
        public var roundTripNanoseconds: Int64?
        /// Packets sent since the report before.
        public var packetsSent: Int64

        /// Makes an interval.
        @_noAllocation @_noLocks
        public init(
            highestSequence: UInt32, fractionLost: UInt8, roundTripNanoseconds: Int64?, packetsSent: Int64
        ) {
            self.highestSequence = highestSequence
            self.fractionLost = fractionLost
            self.roundTripNanoseconds = roundTripNanoseconds
            self.packetsSent = packetsSent
        }
    }

    /// Why it has tripped; `nil` while all is well.
    public private(set) var trip: Trip?

    private let configuration: Configuration
    /// When the last report came, or sending began; `nil` while nothing is sent.
    private var heardAt: Instant?
    private var highest: UInt32?
    private var standstills: Int64 = 0
    private var congested: Int64 = 0

    /// Makes a breaker of a stream that does not send yet.
    @_noAllocation @_noLocks
    public init(_ configuration: Configuration) { self.configuration = configuration }

    /// Sending begins, or continues after a hold: reports are due from now.
    @_noAllocation @_noLocks
    public mutating func started(at now: Instant) { heardAt = now }

    /// Sending pauses: no reports are due.
    @_noAllocation @_noLocks
    public mutating func paused() {
        heardAt = nil
        standstills = 0
        congested = 0
    }

    /// When ``check(at:)`` may trip; `nil` if it cannot.
    public var nextDeadline: Instant? {
        @_noAllocation @_noLocks get {
            guard configuration.needsReports, case .none = trip else { return nil }
            return heardAt?.advanced(byNanoseconds: 3 * configuration.reportIntervalNanoseconds)
        }
    }

    /// Looks whether reports are missing.
    @_noAllocation @_noLocks
    public mutating func check(at now: Instant) {
        guard let deadline = nextDeadline, deadline.nanoseconds(to: now) >= 0 else { return }
        trip = .reportsMissing
    }

    /// A report on our stream came.
    @_noAllocation @_noLocks
    public mutating func reported(_ interval: Interval, at now: Instant) {
        guard case .none = trip, let before = heardAt else { return }
        heardAt = now
        if let highest, interval.packetsSent > 0, Int32(bitPattern: interval.highestSequence &- highest) <= 0 {
            standstills += 1
        } else {
            standstills = 0
        }
        highest = interval.highestSequence
        let elapsed = before.nanoseconds(to: now)
        congested = isCongested(interval, elapsed) ? congested + 1 : 0
        if standstills >= Self.standstillsAtMost {
            trip = .mediaNotArriving
        } else if congested >= intervals(interval.roundTripNanoseconds) {
            trip = .congestion
        }
    }

    /// More than ten times what TCP would send at this loss and round trip (§4.3, the simplified formula).
    @_noAllocation @_noLocks
    private func isCongested(_ interval: Interval, _ elapsed: Int64) -> Bool {
        guard interval.fractionLost > 0, let roundTrip = interval.roundTripNanoseconds, roundTrip > 0, elapsed > 0,
            interval.packetsSent > 0
        else { return false }
        let loss = Double(interval.fractionLost) / 256
        // X = s / (R × √(2p / 3)) in bytes a second; both sides squared, and the packet's size divided out of them.
        let packetsInRoundTrip = Double(interval.packetsSent) * Double(roundTrip) / Double(elapsed)
        return packetsInRoundTrip * packetsInRoundTrip * 2 * loss / 3 > 100
    }

    /// Reports in a row that must report no arrivals, as §4.2 recommends.
    private static var standstillsAtMost: Int64 { @_noAllocation @_noLocks get { 5 } }

    /// How many reports in a row must show congestion: CB_INTERVAL of §4.3.
    @_noAllocation @_noLocks
    private func intervals(_ roundTrip: Int64?) -> Int64 {
        let three = 3 * configuration.reportIntervalNanoseconds
        let slow = max(max(10 * configuration.packetNanoseconds, 10 * min(roundTrip ?? 0, 60_000_000_000)), three)
        let span = 3 * min(slow, max(15_000_000_000, three))
        return max(1, (span + three - 1) / three)
    }
}
