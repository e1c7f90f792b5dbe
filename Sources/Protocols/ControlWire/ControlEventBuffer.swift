/// Lines that wait to be sent to a client with `watch`; bounded.
///
/// Newer levels replace levels that wait, so a slow client gets only the latest. No other line is dropped: a client
/// with ``capacity`` waiting lines is too slow, and is disconnected.
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
