/// JSON text that is being written, with the containers around the current position.
struct JSONDraft {
    /// One value that is being written.
    private struct Level {
        var kind = Kind.unknown
        /// The start of its text.
        var start: Int
        /// The start of its members in ``members``; an array has none.
        var firstMember: Int
        /// Elements of an array.
        var count = 0
        /// Whether the members came in the order of their names.
        var isSorted = true
    }

    enum Kind {
        /// The type of the value is not known yet.
        case unknown
        case single
        case array
        case object
    }

    var text = JSONText()
    private var levels: [Level] = []
    /// Names of the members of all objects that are being written, and where their texts begin.
    private var members: [(name: String, start: Int)] = []
    /// Something was asked for that is not written here.
    var isBroken = false

    /// Most messages are shorter.
    init() { text.bytes.reserveCapacity(256) }

    /// The text, when all is written.
    func finished() throws(JSONText.NotWritable) -> [UInt8] {
        guard !isBroken, levels.isEmpty else { throw JSONText.NotWritable() }
        return text.bytes
    }

    // MARK: - Values

    mutating func write(_ value: JSONValue) throws(JSONText.NotWritable) {
        try text.write(value, levels: JSONText.nesting - levels.count)
    }

    /// Begins a value whose type is not known yet.
    mutating func open() throws(JSONText.NotWritable) {
        guard levels.count < JSONText.nesting else { throw JSONText.NotWritable() }
        levels.append(Level(start: text.bytes.count, firstMember: members.count))
    }

    /// Makes the current value a container of a kind; an object may be requested several times.
    ///
    /// - Returns: Its depth.
    mutating func become(_ kind: Kind) -> Int {
        let depth = levels.count
        guard let level = levels.last, level.kind == .unknown || (kind == .object && level.kind == .object) else {
            isBroken = true
            return depth
        }
        if level.kind == .unknown {
            levels[depth - 1].kind = kind
            if kind == .object { text.bytes.append(UInt8(ascii: "{")) }
            if kind == .array { text.bytes.append(UInt8(ascii: "[")) }
        }
        return depth
    }

    /// Ends the value that was opened last.
    mutating func close() {
        guard let level = levels.popLast() else { return }
        switch level.kind {
        case .unknown: isBroken = true
        case .single: if level.count == 0 { isBroken = true }
        case .array: text.bytes.append(UInt8(ascii: "]"))
        case .object:
            if !level.isSorted { sortMembers(of: level) }
            text.bytes.append(UInt8(ascii: "}"))
            members.removeSubrange(level.firstMember...)
        }
    }

    /// Puts the members of an object, which end where the text does, in the order of their names.
    private mutating func sortMembers(of level: Level) {
        let own = members[level.firstMember...]
        let sorted = own.indices.sorted { JSONText.precedes(own[$0].name, own[$1].name) }
        var ordered: [UInt8] = []
        ordered.reserveCapacity(text.bytes.count - level.start)
        for (place, index) in sorted.enumerated() {
            if place > 0 {
                ordered.append(UInt8(ascii: ","))
                // The later one would count.
                if own[index].name == own[sorted[place - 1]].name { isBroken = true }
            }
            // There is a comma before the next one.
            let end = index + 1 < own.endIndex ? own[index + 1].start - 1 : text.bytes.count
            ordered += text.bytes[own[index].start..<end]
        }
        text.bytes.replaceSubrange((level.start + 1)..., with: ordered)
    }

    // MARK: - Places

    /// Whether the current value is at `depth` and of a kind.
    private mutating func check(_ kind: Kind, at depth: Int) throws(JSONText.NotWritable) {
        if levels.count == depth, let level = levels.last, level.kind == kind { return }
        isBroken = true
        throw JSONText.NotWritable()
    }

    /// Begins a member of the object at `depth`.
    mutating func begin(_ name: String, at depth: Int) throws(JSONText.NotWritable) {
        try check(.object, at: depth)
        if members.count > levels[depth - 1].firstMember, let last = members.last {
            text.bytes.append(UInt8(ascii: ","))
            if !JSONText.precedes(last.name, name) { levels[depth - 1].isSorted = false }
        }
        members.append((name, text.bytes.count))
        text.write(name)
        text.bytes.append(UInt8(ascii: ":"))
    }

    /// Begins an element of the array at `depth`.
    mutating func beginElement(at depth: Int) throws(JSONText.NotWritable) {
        try check(.array, at: depth)
        if levels[depth - 1].count > 0 { text.bytes.append(UInt8(ascii: ",")) }
        levels[depth - 1].count += 1
    }

    /// Begins the only value at `depth`.
    mutating func beginSingle(at depth: Int) throws(JSONText.NotWritable) {
        try check(.single, at: depth)
        guard levels[depth - 1].count == 0 else {
            isBroken = true
            throw JSONText.NotWritable()
        }
        levels[depth - 1].count = 1
    }

    /// Elements of the array at `depth`.
    func count(at depth: Int) -> Int { depth > 0 && depth <= levels.count ? levels[depth - 1].count : 0 }
}
