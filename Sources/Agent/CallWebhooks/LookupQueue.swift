internal import Core

/// Names of hosts that are to be looked up: a few at a time, each once for all who ask at the same time, and none for longer
/// than ``limit``.
struct LookupQueue: ProtocolCore, Sendable {
    enum Input: Equatable, Sendable {
        /// A requester, which has this number, asks for a host's addresses.
        case ask(host: String, number: Int)
        /// The look-up of a host has ended, with or without a result.
        case ended(host: String)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    enum Output: Equatable, Sendable {
        case look(host: String)
        /// Give those who asked what was found.
        case answer(host: String, [Int])
        case refuse(Int, Refusal)
    }

    enum Refusal: String, Error, Equatable, CustomStringConvertible {
        case tooMany = "is not looked up: too many look-ups wait"
        case tooLate = "could not be looked up in time"

        var description: String { rawValue }
    }

    /// Look-ups at a time. One that hangs keeps its thread until the system's resolver gives up.
    static let mostRunning = 2
    /// Those who may wait for an answer.
    static let mostWaiting = 64
    /// How long a requester waits.
    static let limit = Duration.seconds(5)

    private struct Asker: Sendable {
        var number: Int
        var host: String
        var until: Instant
    }

    /// By time, as they have come.
    private var askers: [Asker] = []
    private var running: Set<String> = []

    var nextDeadline: Instant? { askers.first?.until }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .ask(let host, let number):
            guard askers.count < Self.mostWaiting else { return outbox.append(.refuse(number, .tooMany)) }
            askers.append(Asker(number: number, host: host, until: now.advanced(by: Self.limit)))
        case .ended(let host):
            guard running.remove(host) != nil else { return }
            outbox.append(.answer(host: host, askers.filter { $0.host == host }.map(\.number)))
            askers.removeAll { $0.host == host }
        case .timerFired:
            while let first = askers.first, first.until <= now {
                askers.removeFirst()
                outbox.append(.refuse(first.number, .tooLate))
            }
        }
        while running.count < Self.mostRunning, let next = askers.first(where: { !running.contains($0.host) }) {
            running.insert(next.host)
            outbox.append(.look(host: next.host))
        }
    }
}
