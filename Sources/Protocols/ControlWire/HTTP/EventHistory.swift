public import Core
internal import JSON

/// The newest events of a device, each with a position, for clients that come again.
///
/// Bounded: at most ``capacity`` events and ``mostBytes`` bytes. Positions of one run of the process are consecutive, and each run begins
/// at a multiple of 2^40, so that no position is used again after a crash. What a client misses it receives as a `gap`.
public struct EventHistory: Sendable {
    /// Events that are kept.
    public static let capacity = 10_000
    /// Bytes of events that are kept.
    public static let mostBytes = 8 << 20

    /// One event.
    public struct Event: Hashable, Sendable {
        /// Its position.
        public let position: UInt64
        /// Its `event`.
        public let name: String
        /// The account that it is about; nil for none.
        public let account: String?
        /// The event in JSON, without a line break.
        public let json: [UInt8]

        private init(_ position: UInt64, _ other: Event) {
            (name, account, json) = (other.name, other.account, other.json)
            self.position = position
        }

        /// The same at another position.
        func moved(to position: UInt64) -> Event { Event(position, self) }

        /// Takes an event as it is written, with or without a line break.
        init(_ position: UInt64, _ line: [UInt8]) {
            json = line.last == UInt8(ascii: "\n") ? Array(line.dropLast()) : line
            self.position = position
            let members = ControlCoding.decode(Members.self, from: json)
            name = members?.event ?? ""
            account = members?.account
        }

        private struct Members: Decodable {
            let event: String?
            let account: String?
        }
    }

    /// Why a client misses events.
    enum Gap: String, Sendable {
        /// They are older than those that are kept.
        case expired
        /// The cursor is of another device, or of a history that is lost.
        case unknownCursor = "unknown_cursor"
        /// The device ended without closing its history, or the disk did not take all events.
        case interrupted
    }

    /// Which history it is.
    public private(set) var id: UInt64
    /// The history in memory that this one was before ``resume(_:run:after:)``; positions were lower by ``origin`` there.
    private var former: UInt64?
    /// The position before this run's first event.
    public private(set) var origin: UInt64
    /// The position of the newest event.
    public private(set) var newest: UInt64
    private var events: [Event] = []
    /// Events before this index are dropped.
    private var first = 0
    private var bytes = 0
    /// Of the first event of a run: the lowest position between which and the event nothing was lost, if the runs before it ended in
    /// order.
    private var bridges: [UInt64: UInt64] = [:]

    /// Begins a history.
    ///
    /// - Parameters:
    ///   - id: Random, and not 0.
    ///   - run: How often the device has started with this history.
    ///   - archive: What earlier runs have kept.
    public init(id: UInt64, run: UInt64 = 0, after archive: EventArchive = EventArchive()) {
        self.id = id
        origin = run << EventArchive.runShift
        newest = origin
        for event in archive.events { append(event) }
        bridges = archive.bridges
        bridges[origin + 1] = archive.end
    }

    /// Continues a history on disk that could not be opened at the start: the events so far are those of a run of that history, behind
    /// what it has kept. Cursors remain valid as long as this process runs.
    ///
    /// Once, and only of a history in memory (run 0).
    public mutating func resume(_ id: UInt64, run: UInt64, after archive: EventArchive) {
        precondition(origin == 0 && former == nil, "a history in memory moves to the disk once")
        var moved = EventHistory(id: id, run: run, after: archive)
        for event in events[first...] { moved.append(event.moved(to: moved.origin + event.position)) }
        moved.newest = moved.origin + newest
        moved.former = self.id
        self = moved
    }

    /// The position of a cursor here; nil if the cursor is not of this history.
    func position(of cursor: EventCursor) -> UInt64? {
        switch cursor.history {
        case id: cursor.position <= newest ? cursor.position : nil
        case former: cursor.position <= newest - origin ? origin + cursor.position : nil
        case _: nil
        }
    }

    /// Events that are kept.
    public var count: Int { events.count - first }
    /// The cursor of the newest event.
    public var cursor: EventCursor { EventCursor(history: id, position: newest) }

    /// Adds an event.
    ///
    /// - Parameter line: As ``ControlCoding/line(_:of:atMilliseconds:)`` writes it.
    public mutating func add(_ line: [UInt8]) {
        newest += 1
        append(Event(newest, line))
    }

    /// The events after a position, at most `limit`; for the disk.
    public func events(after position: UInt64, atMost limit: Int) -> ArraySlice<Event> {
        events[index(after: position)...].prefix(limit)
    }

    private mutating func append(_ event: Event) {
        events.append(event)
        bytes += event.json.count
        while count > Self.capacity || bytes > Self.mostBytes {
            bytes -= events[first].json.count
            bridges[events[first].position] = nil
            first += 1
        }
        if 2 * first >= events.count {
            events.removeFirst(first)
            first = 0
        }
    }

    private func index(after position: UInt64) -> Int {
        events[first...].sortedIndex(behind: { $0.position > position })
    }
}

/// Where one client is in a history.
public struct EventReader: Sendable {
    /// The wait of a client that does not read, after which it is disconnected.
    public static let patience = Duration.seconds(30)
    /// Bytes that are written at once, unless one event is longer.
    public static let batchBytes = 65_536

    /// What it wants.
    public let subscription: EventSubscription
    /// The first bytes of its stream: the time after which the client connects again, and where the stream begins if the client did not
    /// say.
    public let greeting: [UInt8]
    private var cursor: EventCursor
    private var writesSince: Instant?

    /// Begins where a client wants to.
    public init(_ subscription: EventSubscription, of history: EventHistory) {
        self.subscription = subscription
        switch subscription.start {
        case .now: cursor = history.cursor
        case .oldest: cursor = EventCursor(history: history.id, position: history.positionBeforeOldest)
        case .after(let known): cursor = known
        }
        greeting = EventText.retry + (subscription.start == .now ? EventText.cursor(cursor) : [])
    }

    /// Whether its last batch is still on its way.
    public var isWriting: Bool { writesSince != nil }

    /// Takes what is to be written next: server-sent events (WHATWG HTML, §9.2). Empty if there is nothing new.
    public mutating func next(of history: EventHistory, at now: Instant) -> [UInt8] {
        guard !isWriting else { return [] }
        var bytes: [UInt8] = []
        let position = history.write(after: cursor, account: subscription.account, into: &bytes)
        cursor = EventCursor(history: history.id, position: position)
        if !bytes.isEmpty { writesSince = now }
        return bytes
    }

    /// Something else is written to the client, such as a comment.
    public mutating func begins(at now: Instant) { writesSince = now }

    /// The client has taken what was written.
    public mutating func finished() { writesSince = nil }

    /// Whether the client does not read.
    public func isStuck(at now: Instant) -> Bool {
        writesSince.map { $0.duration(to: now) >= Self.patience } ?? false
    }
}

extension EventHistory {
    /// The position from which everything is received that is kept, without a gap.
    fileprivate var positionBeforeOldest: UInt64 { first < events.count ? events[first].position - 1 : newest }

    /// Whether events are missing between a position and an event.
    private func isGap(from position: UInt64, to event: Event) -> Bool {
        position < bridges[event.position] ?? event.position - 1
    }

    /// The first event after a cursor that is wanted.
    ///
    /// - Returns: The event; the cursor before it, or behind all events if there is none; why events may be missing after `cursor`.
    func first(
        after cursor: EventCursor, where isWanted: (Event) -> Bool
    ) -> (event: Event?, before: EventCursor, gap: Gap?) {
        let known = position(of: cursor)
        var position = known ?? positionBeforeOldest
        var gap: Gap? = known == nil ? .unknownCursor : nil
        for event in events[index(after: position)...] {
            if isGap(from: position, to: event) { gap = gap ?? reason(before: event) }
            if isWanted(event) { return (event, EventCursor(history: id, position: event.position - 1), gap) }
            position = event.position
        }
        return (nil, EventCursor(history: id, position: position), gap)
    }

    /// Why events before this one are missing.
    private func reason(before event: Event) -> Gap {
        event.position == events[first].position ? .expired : .interrupted
    }

    /// Writes events from a cursor on.
    ///
    /// - Returns: The position behind them.
    fileprivate func write(after cursor: EventCursor, account: String?, into bytes: inout [UInt8]) -> UInt64 {
        let known = self.position(of: cursor)
        var position = known ?? positionBeforeOldest
        if known == nil { write(.unknownCursor, continuing: position, into: &bytes) }
        for event in events[index(after: position)...] {
            guard bytes.count < EventReader.batchBytes else { return position }
            if isGap(from: position, to: event) {
                write(reason(before: event), continuing: event.position - 1, into: &bytes)
            }
            position = event.position
            if let account, let own = event.account, own != account { continue }
            EventText.write(event.name, event.json, id: EventCursor(history: id, position: position), into: &bytes)
        }
        // What may be lost is of an earlier run, and known before this run has an event.
        guard position < origin else { return position }
        if position < bridges[origin + 1] ?? origin { write(.interrupted, continuing: origin, into: &bytes) }
        return origin
    }

    private func write(_ gap: Gap, continuing position: UInt64, into bytes: inout [UInt8]) {
        let json = ControlCoding.line(["event": "gap", "reason": gap.rawValue]).dropLast()
        EventText.write("gap", json, id: EventCursor(history: id, position: position), into: &bytes)
    }
}

/// Server-sent events as text (WHATWG HTML, §9.2).
public enum EventText {
    /// A comment, which keeps the connection open and that clients ignore.
    public static let heartbeat = Array(": heartbeat\n\n".utf8)

    /// The first bytes of a stream: the time after which a client connects again.
    public static let retry = Array("retry: 2000\n\n".utf8)

    /// A cursor without an event, for a client that connects again before there is one.
    public static func cursor(_ cursor: EventCursor) -> [UInt8] { Array("id: \(cursor)\n\n".utf8) }

    /// An event without a position.
    public static func event(_ name: String, _ line: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        write(name, line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], id: nil, into: &bytes)
        return bytes
    }

    static func write(_ name: String, _ json: some Sequence<UInt8>, id: EventCursor?, into bytes: inout [UInt8]) {
        if let id { bytes += "id: \(id)\n".utf8 }
        bytes += "event: \(name)\ndata: ".utf8
        bytes += json
        bytes += "\n\n".utf8
    }
}
