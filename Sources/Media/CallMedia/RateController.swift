internal import RTP
internal import Core

/// Controls sending by the peer's reports: how much is sent, how well it is protected, and whether at all.
struct RateController {
    /// Takes what the peer says of our packets.
    var feedback: LossFeedback
    private var breakerConfiguration: CircuitBreaker.Configuration
    private var breaker: CircuitBreaker
    /// The breaker has been started, with the first report, because some peers send none at all.
    private var isWatching = false
    private var packetsSentAtReport = 0
    /// When the newest authentic packet of the peer arrived, media or RTCP.
    private(set) var heardAt: Instant?
    private var silenceToldAt: Instant?
    /// Why sending has stopped; nil while it has not.
    private(set) var stop: SendingStop?
    private var change: SendingChange?

    /// Ten packets of the usual length: fewer are missing now and then in any network.
    private static var silenceNanoseconds: Int64 { @_noAllocation @_noLocks get { 200_000_000 } }

    /// - Parameters:
    ///   - bitrateBps: The most that is sent.
    ///   - packetNanoseconds: Time that one packet covers.
    init(bitrateBps: Int, packetNanoseconds: Int64) {
        feedback = LossFeedback(.init(maximumBitrateBps: bitrateBps, packetNanoseconds: packetNanoseconds))
        breakerConfiguration = CircuitBreaker.Configuration(packetNanoseconds: packetNanoseconds)
        breaker = CircuitBreaker(breakerConfiguration)
    }

    /// Sends otherwise from now on: see ``init(bitrateBps:packetNanoseconds:)``. A stop stays a stop.
    @_noAllocation @_noLocks
    mutating func change(bitrateBps: Int, packetNanoseconds: Int64) {
        feedback.change(to: .init(maximumBitrateBps: bitrateBps, packetNanoseconds: packetNanoseconds))
        guard packetNanoseconds != breakerConfiguration.packetNanoseconds else { return }
        breakerConfiguration = CircuitBreaker.Configuration(packetNanoseconds: packetNanoseconds)
        guard !isStopped else { return }
        breaker = CircuitBreaker(breakerConfiguration)
        isWatching = false
    }

    /// Loss that the encoder is to expect, in percent.
    var expectedLossPercent: Int { @_noAllocation @_noLocks get { feedback.adaptation.expectedLossPercent } }

    /// What the encoder is to send, in bits per second.
    var bitrateBps: Int { @_noAllocation @_noLocks get { feedback.adaptation.bitrateBps } }

    /// How many earlier frames each packet repeats, where the peer takes that.
    var redundancyDepth: Int { @_noAllocation @_noLocks get { feedback.adaptation.redundancyDepth } }

    /// Whether nothing may be sent.
    var isStopped: Bool {
        @_noAllocation @_noLocks get {
            guard case .some = stop else { return false }
            return true
        }
    }

    /// What has changed, once.
    @_noAllocation @_noLocks
    mutating func takeChange() -> SendingChange? {
        let taken = change
        change = nil
        return taken
    }

    /// An authentic packet of the peer arrived. If sending had stopped because nothing arrived, the path works again
    /// (RFC 8083 §4.5 permits sending again for such a reason).
    @_noAllocation @_noLocks
    mutating func heard(at now: Instant) {
        heardAt = now
        guard case .peerSilent = stop else { return }
        stop = nil
        breaker = CircuitBreaker(breakerConfiguration)
        isWatching = false
        change = .resumed
    }

    /// Whether the peer has been silent long enough to check its path. True twice a second while the silence
    /// lasts: an answer that was in flight when the path died proves little, and the next path may be as dead.
    @_noAllocation @_noLocks
    mutating func takeSilence(at now: Instant) -> Bool {
        guard let heard = heardAt, heard.nanoseconds(to: now) >= Self.silenceNanoseconds else { return false }
        if let told = silenceToldAt, told.nanoseconds(to: now) < 500_000_000 { return false }
        silenceToldAt = now
        return true
    }

    /// Nothing is being sent, by agreement or for want of a path: no report need come.
    @_noAllocation @_noLocks
    mutating func paused() {
        guard isWatching else { return }
        isWatching = false
        breaker.paused()
    }

    /// Looks whether the peer has fallen silent. A peer whose media comes is there, though its reports do not come.
    @_noAllocation @_noLocks
    mutating func check(at now: Instant) {
        guard isWatching, !isStopped, let heard = heardAt,
            heard.nanoseconds(to: now) >= 3 * breakerConfiguration.reportIntervalNanoseconds
        else { return }
        breaker.check(at: now)
        takeTrip()
    }

    /// A report on our stream came.
    ///
    /// - Returns: Whether bitrate, expected loss or redundancy are others now.
    @_noAllocation @_noLocks
    mutating func reported(
        _ report: ReportBlock, roundTripNanoseconds: Int64?, packetsSent: Int, at now: Instant
    ) -> Bool {
        watch(report, roundTripNanoseconds, packetsSent, now)
        return feedback.reported(
            report, roundTripNanoseconds: roundTripNanoseconds, packetsSent: packetsSent, at: now)
    }

    @_noAllocation @_noLocks
    private mutating func watch(_ report: ReportBlock, _ roundTrip: Int64?, _ packetsSent: Int, _ now: Instant) {
        let sent = packetsSent - packetsSentAtReport
        packetsSentAtReport = packetsSent
        guard isWatching else {
            isWatching = true
            breaker.started(at: now)
            return
        }
        breaker.reported(
            .init(
                highestSequence: report.extendedHighestSequence, fractionLost: report.fractionLost,
                roundTripNanoseconds: roundTrip, packetsSent: Int64(sent)), at: now)
        takeTrip()
    }

    @_noAllocation @_noLocks
    private mutating func takeTrip() {
        guard !isStopped, let trip = breaker.trip else { return }
        let reason: SendingStop =
            switch trip {
            case .reportsMissing: .peerSilent
            case .mediaNotArriving: .mediaNotArriving
            case .congestion: .congestion
            }
        stop = reason
        change = .stopped(reason)
    }
}

/// A call's sending has stopped, or resumes.
package enum SendingChange: BitwiseCopyable {
    case stopped(SendingStop)
    case resumed
}

/// Why a call stopped sending (RFC 8083 §4). RTCP and receiving continue.
@frozen
public enum SendingStop: String, Sendable, BitwiseCopyable {
    /// Nothing has arrived from the peer for 15 s. Sending begins again when something does.
    case peerSilent = "nothing comes from the peer any more"
    /// The peer's reports say that none of our packets arrives.
    case mediaNotArriving = "none of our packets arrives"
    /// Far more is lost, and later, than a fair share of the network would be.
    case congestion = "the network cannot carry the call"
}
