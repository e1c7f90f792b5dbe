public import Core

/// Asks the local link for the addresses of names (RFC 6762 §5), without I/O.
///
/// Names are of the form that browsers use to hide an address: one label and ".local". Each is asked for at most three
/// times. Any host on the link can answer, so the answer must be proved by other means, as ICE does.
public struct NameResolver: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Sendable {
        /// Find the address of a name. A name that is requested again while its lookup runs is answered once.
        case resolve(String)
        /// A datagram came.
        case datagram([UInt8], source: SocketAddress)
        /// ``nextDeadline`` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    public enum Output: Equatable, Sendable {
        /// Send this to ``group``, on every interface in use, from its port if that can be had.
        case transmit([UInt8])
        /// A name's address; the port is 0. The name is in lower case.
        case resolved(String, SocketAddress)
        /// No answer came, or the name is not of that form.
        case gaveUp(String)
    }

    private struct Question: Sendable {
        var tries = 0
        var due: Instant
    }

    /// The multicast address of all hosts with such names (RFC 6762 §3).
    public static let group = SocketAddress(addressBytes: [224, 0, 0, 251], port: 5_353)
    /// Names that are asked for at once; more are given up.
    public static let maximumNames = 128
    /// The times from one try to the next, and to the end (RFC 6762 §5.2: at least a second).
    private static let waits = [Duration.seconds(1), .seconds(2), .seconds(2)]

    private var questions: [String: Question] = [:]

    /// Makes a resolver that asks for nothing yet.
    public init() {}

    /// Whether any name is being asked for.
    public var isBusy: Bool { !questions.isEmpty }

    /// The earliest of all that is due.
    public var nextDeadline: Instant? { questions.values.map(\.due).min() }

    /// Whether a name is of the form that is asked for: one label and ".local".
    public static func isHidden(_ name: String) -> Bool {
        let labels = name.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        return labels.count == 2 && labels[1] == "local" && (1...63).contains(labels[0].utf8.count)
    }

    /// Takes one input at time `now`.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .resolve(let name):
            let name = name.lowercased()
            guard questions[name] == nil else { return }
            guard Self.isHidden(name), questions.count < Self.maximumNames else {
                outbox.append(.gaveUp(name))
                return
            }
            questions[name] = Question(due: now)
            ask(name, at: now, into: &outbox)
        case .datagram(let bytes, let source):
            // RFC 6762 §6: what comes from another port is no answer.
            guard source.port == Self.group?.port else { return }
            for answer in DNSMessage.answers(in: bytes) where !answer.address.withPort(1).isUnusableAsPeer {
                guard questions.removeValue(forKey: answer.name) != nil else { continue }
                outbox.append(.resolved(answer.name, answer.address))
            }
        case .timerFired:
            for name in questions.keys.sorted() { ask(name, at: now, into: &outbox) }
        }
    }

    private mutating func ask(_ name: String, at now: Instant, into outbox: inout [Output]) {
        guard let question = questions[name], question.due <= now else { return }
        guard question.tries < Self.waits.count else {
            questions[name] = nil
            outbox.append(.gaveUp(name))
            return
        }
        questions[name] = Question(tries: question.tries + 1, due: now.advanced(by: Self.waits[question.tries]))
        for type in [DNSMessage.RecordType.a, .aaaa] {
            if let query = DNSMessage.query(for: name, type) { outbox.append(.transmit(query)) }
        }
    }
}
