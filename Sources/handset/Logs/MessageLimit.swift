internal import Logging
internal import Core

/// Decides which lines of the log are written, so that a storm of one message cannot fill a disk.
///
/// Bounds the lines with the same message and level, without regard to metadata, in a minute that begins with the first one;
/// further ones are counted, and reported in one line at the end of that minute. What is `critical` is always written.
struct MessageLimit: ProtocolCore, Sendable {
    enum Input: Sendable {
        /// Something is to be logged.
        case message(String, Logger.Level, label: String)
        case timerFired
        /// The process ends: reports now what was counted.
        case finish
    }

    enum Output: Equatable, Sendable {
        /// Write the message that was fed, before any later one.
        case write
        /// Report how many of a message were not written.
        case tell(Withheld)
    }

    /// How many lines with a message were not written in a minute.
    struct Withheld: Equatable, Sendable {
        let message: String
        let level: Logger.Level
        let label: String
        let count: Int
    }

    /// Lines in a minute with one message at one level; nil for any number.
    static func lines(at level: Logger.Level) -> Int? {
        switch level {
        case .critical: nil
        case .error, .warning: 60
        case .notice, .info: 600
        case .debug, .trace: 6_000
        }
    }

    /// Different messages that are counted apart in a minute. Beyond them, all messages of a level count as one.
    static let capacity = 256
    /// The common name of messages that are not counted apart.
    static let others = "Messages of many kinds"
    /// The part of a longer message that identifies it; bytes of UTF-8.
    static let keyBytes = 512
    static let minute = Duration.seconds(60)

    private struct Key: Hashable {
        let message: String
        let level: Logger.Level
        let label: String
    }

    private struct Count {
        let end: Instant
        var written = 0
        var withheld = 0
    }

    private var counts: [Key: Count] = [:]
    /// When there is room for another message again; nil while there may be some.
    private var fullUntil: Instant?
    /// The first end of a minute in which something was withheld; nil while nothing is.
    private(set) var nextDeadline: Instant?

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .message(let message, let level, let label):
            guard let limit = Self.lines(at: level) else { return outbox.append(.write) }
            endMinutes(at: now, into: &outbox)
            let key = key(for: Key(message: Self.shortened(message), level: level, label: label), at: now)
            // A count whose minute has ended without anything withheld is still there.
            var count = counts[key].flatMap { $0.end > now ? $0 : nil } ?? Count(end: now.advanced(by: Self.minute))
            if count.written < limit {
                count.written += 1
                outbox.append(.write)
            } else {
                count.withheld += 1
                nextDeadline = min(nextDeadline ?? count.end, count.end)
            }
            counts[key] = count
        case .timerFired: endMinutes(at: now, into: &outbox)
        case .finish:
            tell(counts.filter { $0.value.withheld > 0 }, into: &outbox)
            counts = [:]
            nextDeadline = nil
        }
    }

    /// The entry for a message: its own, or that of all others at its level when there is no room for one.
    private mutating func key(for key: Key, at now: Instant) -> Key {
        if counts[key] != nil { return key }
        // Not with each message of a storm.
        if counts.count >= Self.capacity, fullUntil.map({ now >= $0 }) ?? true {
            counts = counts.filter { $0.value.end > now }
            fullUntil = counts.count < Self.capacity ? nil : counts.values.lazy.map(\.end).min()
        }
        return counts.count < Self.capacity ? key : Key(message: Self.others, level: key.level, label: "")
    }

    private mutating func endMinutes(at now: Instant, into outbox: inout [Output]) {
        guard let deadline = nextDeadline, now >= deadline else { return }
        let over = counts.filter { $0.value.end <= now }
        for key in over.keys { counts[key] = nil }
        tell(over.filter { $0.value.withheld > 0 }, into: &outbox)
        nextDeadline = counts.values.filter { $0.withheld > 0 }.map(\.end).min()
    }

    /// In the order in which the minutes began.
    private func tell(_ counts: [Key: Count], into outbox: inout [Output]) {
        for (key, count) in counts.sorted(by: { ($0.value.end, $0.key.message) < ($1.value.end, $1.key.message) }) {
            outbox.append(
                .tell(Withheld(message: key.message, level: key.level, label: key.label, count: count.withheld)))
        }
    }

    private static func shortened(_ message: String) -> String {
        guard message.utf8.count > keyBytes else { return message }
        return String(decoding: message.utf8.prefix(keyBytes), as: UTF8.self)
    }
}
