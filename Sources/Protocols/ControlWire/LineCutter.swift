/// Cuts what a stream brings into lines of a bounded length.
///
/// A line that is too long is reported once and skipped; the lines after it are cut as before.
public struct LineCutter: Sendable {
    /// A line of the stream.
    public enum Line: Hashable, Sendable {
        /// A line without its line break, and without a carriage return before that. It is not empty.
        case whole([UInt8])
        /// A line with more than the allowed bytes.
        case tooLong
    }

    private let maximumBytes: Int
    private var begun: [UInt8] = []
    private var isPassingOver = false

    /// - Parameter maximumBytes: Of one line, without its line break.
    public init(maximumBytes: Int = ControlLimits.requestBytes) { self.maximumBytes = maximumBytes }

    /// Takes the next bytes, and appends the lines that they complete.
    public mutating func take(_ bytes: some Sequence<UInt8>, into lines: inout [Line]) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                finish(into: &lines)
            } else if !isPassingOver {
                begun.append(byte)
                // One byte more is allowed, because it may be a carriage return.
                guard begun.count > maximumBytes + 1 else { continue }
                begun = []
                isPassingOver = true
                lines.append(.tooLong)
            }
        }
    }

    /// Bytes of the stream are missing here: the current line is incomplete, and the next bytes up to a line break are
    /// skipped.
    public mutating func skip() { (begun, isPassingOver) = ([], true) }

    /// The stream or the line ended: the bytes so far count as a line.
    public mutating func finish(into lines: inout [Line]) {
        defer { (begun, isPassingOver) = ([], false) }
        if begun.last == UInt8(ascii: "\r") { begun.removeLast() }
        if begun.count > maximumBytes { return lines.append(.tooLong) }
        guard !begun.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) else { return }
        lines.append(.whole(begun))
    }
}
