internal import Core

/// What is wrong with a bot's message. The text is for the bot's author and does not repeat the message.
public struct WireFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of faults, which are counted apart.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        /// A message, its sound, or the name of a mark is too long.
        case tooLong
        /// A message is no JSON object, or is nested too deeply, or is text where bytes are expected, or the reverse.
        case malformed
        /// There is no such event.
        case unknownEvent
        /// A member is missing, or is not what it must be.
        case wrongMember
        /// Sound is not in base64, or is half a sample too long or too short, or empty; or a mark follows only such
        /// sound.
        case wrongSound
        /// Sound is in a format that the wire does not support.
        case wrongFormat
        /// A message names another stream.
        case otherStream
        /// Too many marks wait.
        case tooManyMarks
        /// The bot reports that it has failed.
        case farEnd
        /// Something came before the stream was opened.
        case early
        /// There were too many faults.
        case flood
    }

    /// The kind.
    public let kind: Kind
    /// The message.
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    static let notObject = WireFault(.malformed, "a message must be a JSON object")
    static let tooLong = WireFault(.tooLong, "a message has \(WireLimits.messageBytes) bytes at most")
    static let flood = WireFault(
        .flood,
        "the bot has sent more than \(WireLimits.faults) messages that cannot be followed; the newest one is counted too"
    )
    static let tooFast = WireFault(
        .flood,
        "the bot has sent more than \(WireLimits.messages) messages at once, or \(WireLimits.messagesPerSecond) a second"
    )
    static let early = WireFault(.early, "the bot has sent something before the stream was opened")
    static let otherStream = WireFault(.otherStream, "the message names another stream than this one")
}

/// Counts of a wire's received messages, and of their faults.
public struct WireCounts: Equatable, Sendable {
    /// Messages of the bot; with TCP, frames.
    public internal(set) var messages = 0
    /// Bytes of sound that were handed on to be played.
    public internal(set) var soundBytes = 0
    /// Faults by kind; a kind that did not come is not there.
    public internal(set) var faults: [WireFault.Kind: Int] = [:]

    /// Counts nothing yet.
    public init() {}
}

/// Counts a wire's faults, and reports when there are too many.
struct FaultLimiter: Sendable {
    private(set) var counts = WireCounts()
    private var tolerance = TokenBucket()
    private static let rate = TokenBucket.Rate(
        burst: WireLimits.faults, every: .nanoseconds(WireLimits.faultNanoseconds))

    mutating func countMessage() { counts.messages += 1 }
    mutating func countSound(_ bytes: Int) { counts.soundBytes += bytes }

    /// Counts that there were too many messages.
    mutating func countFlood() { counts.faults[.flood, default: 0] += 1 }

    /// Counts a fault.
    ///
    /// - Returns: Whether the wire may continue.
    mutating func count(_ fault: WireFault, at now: Instant) -> Bool {
        counts.faults[fault.kind, default: 0] += 1
        if tolerance.take(Self.rate, at: now) { return true }
        countFlood()
        return false
    }
}
