internal import Core

/// The lines of a history on disk: `run NUMBER` at the start of the device, `event POSITION JSON`, and `end POSITION` when a run has ended
/// and all its events are above.
///
/// Any lines may be read; those that are damaged are skipped, and events that are missing are a gap.
public struct EventArchive: Sendable {
    /// A run's number is in the bits of a position from this one on.
    static let runShift: UInt64 = 40
    /// Runs that positions have room for.
    public static let mostRuns: UInt64 = 1 << 22

    /// The events, with increasing positions.
    private(set) var events: [EventHistory.Event] = []
    /// As in ``EventHistory``.
    private(set) var bridges: [UInt64: UInt64] = [:]
    /// The lowest position after which nothing is missing that is not in ``events``; nil if something may be.
    private var complete: UInt64?
    /// Whether the last run has not ended.
    private var isOpen = false
    /// Whether the current run has no event yet.
    private var isFresh = false

    /// An empty archive.
    public init() {}

    /// Reads the lines of earlier runs, the oldest first. Of events, only those are looked at closely that a history keeps.
    public init(_ lines: [String]) {
        var skipped = max(0, lines.count { $0.hasPrefix("event ") } - EventHistory.capacity)
        for line in lines {
            if skipped > 0, line.hasPrefix("event ") {
                skipped -= 1
                (isFresh, complete) = (false, nil)
            } else {
                read(line)
            }
        }
    }

    /// The position from which on a client misses nothing, if the last run has ended in order.
    var end: UInt64? { isOpen ? nil : complete }

    /// The line at the start of a run.
    public static func run(_ number: UInt64) -> String { "run \(number)" }

    /// The line of an event.
    public static func line(_ event: EventHistory.Event) -> String {
        "event \(event.position) \(String(decoding: event.json, as: UTF8.self))"
    }

    /// The line at the end of a run.
    public static func end(_ position: UInt64) -> String { "end \(position)" }

    private mutating func read(_ line: String) {
        let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, let number = Digits.number(parts[1], upTo: UInt64.max) else { return }
        switch (parts[0], parts.count) {
        case ("run", 2):
            if isOpen { complete = nil }
            (isOpen, isFresh) = (true, true)
        case ("event", 3): read(number, Array(parts[2].utf8))
        case ("end", 2):
            if !isFresh || complete == nil { complete = number }
            isOpen = false
        default: break
        }
    }

    private mutating func read(_ position: UInt64, _ json: [UInt8]) {
        guard position > events.last?.position ?? 0, position >> Self.runShift < Self.mostRuns else { return }
        let event = EventHistory.Event(position, json)
        guard !event.name.isEmpty else { return }
        // If it is not the first event of its run, earlier ones are missing.
        if isFresh, position - 1 == (position >> Self.runShift) << Self.runShift { bridges[position] = complete }
        (isFresh, isOpen, complete) = (false, true, nil)
        events.append(event)
    }
}
