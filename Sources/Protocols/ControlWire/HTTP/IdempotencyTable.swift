public import Core

/// The answers to requests with an `Idempotency-Key`, so that one that is sent again is not carried out again.
///
/// Bounded in number, bytes and time: an answer is kept for ``keptFor``, and while ``capacity`` keys or ``mostBytes`` are held, requests
/// with a new key are refused. A request that failed has changed nothing, so its key is free again.
public struct IdempotencyTable: Sendable {
    /// Keys at a time.
    public static let capacity = 10_000
    /// Bytes of keys and answers at a time.
    public static let mostBytes = 8 << 20
    /// How long an answer is kept after its request came.
    public static let keptFor = Duration.seconds(1_800)
    /// Bytes in a key.
    public static let keyBytes = 255

    /// What to do with a request.
    public enum Verdict: Hashable, Sendable {
        /// Carry it out, and call ``finish(_:with:)``.
        case proceed
        /// Send the first request's answer.
        case replay(ControlHTTPAnswer)
        /// Refuse it.
        case refuse(ControlProblem)
    }

    private struct Entry: Sendable {
        let fingerprint: [UInt8]
        let began: Instant
        var answer: ControlHTTPAnswer?
    }

    private var entries: [String: Entry] = [:]
    /// Keys by the time at which their requests came; those before ``first`` are gone.
    private var queue: [(key: String, began: Instant)] = []
    private var first = 0
    private var bytes = 0

    /// An empty table.
    public init() {}

    /// Keys that are held.
    public var count: Int { entries.count }
    /// Places of keys, also of those whose requests have failed a moment ago: at most twice as many as keys, and 64.
    var places: Int { queue.count - first }

    /// Looks at a request with a key.
    ///
    /// - Parameter fingerprint: The same for equal requests alone.
    public mutating func begin(_ key: String, fingerprint: [UInt8], at now: Instant) -> Verdict {
        expire(at: now)
        forgetFailed()
        if let entry = entries[key] { return Self.verdict(entry, fingerprint) }
        let cost = key.utf8.count + fingerprint.count
        guard entries.count < Self.capacity, bytes + cost <= Self.mostBytes else {
            return .refuse(
                ControlProblem(.tooMany, "\(entries.count) keys are kept, the limit; try again later, or without a key")
            )
        }
        entries[key] = Entry(fingerprint: fingerprint, began: now)
        queue.append((key, now))
        bytes += cost
        return .proceed
    }

    /// Keeps the answer to a request that was carried out, unless it failed.
    public mutating func finish(_ key: String, with answer: ControlHTTPAnswer) {
        guard entries[key] != nil else { return }
        guard answer.status < 300 else { return remove(key) }
        entries[key]?.answer = answer
        bytes += answer.bytes
    }

    private static func verdict(_ entry: Entry, _ fingerprint: [UInt8]) -> Verdict {
        guard entry.fingerprint == fingerprint else {
            return .refuse(
                ControlProblem(.idempotencyMismatch, "another request had this Idempotency-Key; take a new key"))
        }
        guard let answer = entry.answer else {
            return .refuse(
                ControlProblem(.idempotencyBusy, "the first request with this key has no answer yet; try again later"))
        }
        return .replay(answer)
    }

    /// Forgets old answers.
    private mutating func expire(at now: Instant) {
        while first < queue.count, queue[first].began.duration(to: now) >= Self.keptFor {
            let (key, began) = queue[first]
            first += 1
            guard let entry = entries[key], entry.began == began else { continue }
            // A request that still has no answer keeps its key, and is looked at again.
            guard entry.answer != nil else {
                queue.append((key, began))
                break
            }
            remove(key)
        }
        guard 2 * first >= queue.count else { return }
        queue.removeFirst(first)
        first = 0
    }

    /// Forgets the places of keys whose requests failed, before they outnumber the others.
    private mutating func forgetFailed() {
        guard queue.count - first > 2 * entries.count + 64 else { return }
        queue = queue[first...].filter { entries[$0.key]?.began == $0.began }
        first = 0
    }

    private mutating func remove(_ key: String) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        bytes -= key.utf8.count + entry.fingerprint.count + (entry.answer?.bytes ?? 0)
    }
}
