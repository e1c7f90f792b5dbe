internal import Call
internal import CallControl
internal import RTP
internal import SDP

/// Telephone keys that cannot be sent.
public struct DigitError: Error, Sendable, CustomStringConvertible {
    /// Why, and what to do.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension DigitError {
    /// How keys go to a call's peer.
    enum Carrier {
        case media
        case signaling([Character])
    }

    /// Checks that keys can be pressed in a call, and finds how they go to its peer.
    static func carrier(
        of digits: String, in call: CallSession, _ traits: SignalingTraits
    ) throws(DigitError) -> Carrier {
        guard digits.count <= 32 else { throw DigitError("\(digits.count) keys are too many at once: send 32 at most") }
        if call.sentEvents == nil, traits.carriesKeys { return .signaling(try keys(in: digits)) }
        try check(digits, against: call.sentEvents)
        return .media
    }

    /// The keys that these are, in the form that events and signals have.
    static func keys(in digits: String) throws(DigitError) -> [Character] {
        let keys = digits.compactMap { TelephoneEvent($0)?.key }
        guard keys.count == digits.count else {
            throw DigitError("\"\(digits)\" is not made of 0-9, *, #, A-D and ! (flash)")
        }
        return keys
    }

    /// Checks that all of these are keys, and that the peer accepts them.
    ///
    /// - Parameter events: How keys go to the peer; nil if it takes none.
    static func check(_ digits: String, against events: NegotiatedTelephoneEvents?) throws(DigitError) {
        guard let events else { throw DigitError("the peer takes no telephone events (RFC 4733)") }
        _ = try keys(in: digits)
        let pressed = digits.map { ($0, TelephoneEvent($0)) }
        guard let refused = pressed.first(where: { $0.1.map { !events.takes($0.code) } ?? false }) else { return }
        let taken = (0...TelephoneEvent.flash.code).filter(events.takes).map { TelephoneEvent(code: $0).description }
        let list = taken.isEmpty ? "it takes none of ours" : "it takes \(taken.joined())"
        throw DigitError("the peer does not take the key \(refused.0) (RFC 4733 §2.5.1.1): \(list)")
    }
}

/// Why a device can make no call at present.
public struct CallObstacle: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of reasons.
    public enum Reason: Hashable, Sendable {
        /// The device takes no more calls: it is drained, or ends.
        case draining
        /// The device is not connected to its service.
        case notConnected
        /// It has as many calls as `answer.max_calls` allows.
        case callLimit(Int)
        /// The machine carries no more calls (`answer.max_calls: auto`).
        case machineFull
    }

    /// What is in the way.
    public let reason: Reason

    init(_ reason: Reason) { self.reason = reason }

    /// What is in the way, in words.
    public var description: String {
        switch reason {
        case .draining: "the device takes no more calls: it stops"
        case .notConnected: "the device is not connected to its service"
        case .callLimit: "the device has as many calls as it may have"
        case .machineFull: "the device has as many calls as its machine carries"
        }
    }
}

/// The sound of a call cannot be changed as asked.
public struct CallSoundError: Error, Sendable, CustomStringConvertible {
    /// What is in the way. Later versions may add kinds.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// The call is not in a state in which this makes sense.
        public static let wrongState = Code(name: "wrongState")
        /// The file cannot be played, or not be recorded to.
        public static let file = Code(name: "file")
        /// The configuration does not provide for it.
        public static let notConfigured = Code(name: "notConfigured")
        /// The device could not do it.
        public static let failed = Code(name: "failed")
    }

    /// What is in the way.
    public let code: Code
    /// Why, and what to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    static let noProgram = CallSoundError(
        .notConfigured, "the configuration names no program or bot: set behaviour.attach to exec or bot")
}
