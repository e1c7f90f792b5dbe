/// What a client that watches has yet to be sent; bounded.
///
/// Levels that have not gone out are replaced by newer ones, so that they cost a slow client nothing but their age. Of
/// everything else nothing is left out: a client with ``capacity`` lines before it is too slow, and is let go.
public struct ControlEventBuffer: Sendable {
    /// Lines that may wait, besides levels.
    public static let capacity = 256

    private var lines: [[UInt8]] = []
    private var first = 0
    private var levels: [UInt8]?

    /// An empty buffer.
    public init() {}

    /// Adds a line.
    ///
    /// - Returns: False if there is no room for it: the client is too slow.
    public mutating func add(_ line: [UInt8]) -> Bool {
        guard lines.count - first < Self.capacity else { return false }
        lines.append(line)
        return true
    }

    /// Replaces the levels that wait.
    public mutating func setLevels(_ line: [UInt8]) { levels = line }

    /// The next line to send; nil if none waits. Levels, which report the present state, come after all other lines.
    public mutating func next() -> [UInt8]? {
        guard first < lines.count else {
            defer { levels = nil }
            return levels
        }
        let line = lines[first]
        first += 1
        if first == lines.count { (lines, first) = ([], 0) }
        // Lines that have been taken make room at the latest when they are as many as may wait.
        if first >= Self.capacity { (lines, first) = (Array(lines[first...]), 0) }
        return line
    }
}
