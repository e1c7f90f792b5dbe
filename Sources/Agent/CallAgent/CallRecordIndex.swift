public import CallControl
internal import Files

/// The records of a journal's calls that ended, of which only those that are looked at are parsed: a journal has 20 MiB.
public struct CallRecordIndex: Sendable {
    /// A call that ended.
    public struct Entry: Sendable {
        /// When it ended, in milliseconds since 1970.
        public let ended: Int64
        /// The journal's name for it.
        public let call: String
        fileprivate let line: Int
    }

    /// The calls, in the order in which their ends were written.
    public let entries: [Entry]
    private let lines: [String]
    /// The lines of the beginnings.
    private let begins: [String: Int]

    /// Reads a journal's files, which another process may be writing.
    ///
    /// - Throws: ``SignalingError`` with the code `badConfiguration` if a file cannot be read.
    public init(path: String) throws(SignalingError) {
        do throws(PrivateFileError) {
            self.init(lines: try LineJournal.lines(in: path))
        } catch {
            throw SignalingError(.badConfiguration, activity: "read the calls in \"\(path)\"", cause: error.cause)
        }
    }

    init(lines: [String]) {
        var entries: [Entry] = []
        var begins: [String: Int] = [:]
        // Of a call that has several ends, the last one counts.
        var places: [String: Int] = [:]
        for (number, line) in lines.enumerated() {
            guard let call = Self.value(after: Self.name, in: line.utf8.span, while: { $0 != 0x22 }) else { continue }
            let digits = Self.value(after: Self.end, in: line.utf8.span) { (0x30...0x39).contains($0) }
            guard let digits else {
                begins[call] = number
                continue
            }
            guard let ended = Int64(digits) else { continue }
            let entry = Entry(ended: ended, call: call, line: number)
            if let place = places[call] {
                entries[place] = entry
            } else {
                places[call] = entries.count
                entries.append(entry)
            }
        }
        (self.entries, self.lines, self.begins) = (entries, lines, begins)
    }

    /// The record of a call; nil if it cannot be read.
    public func record(of entry: Entry) -> KeptCall? {
        guard var call = KeptCall(line: lines[entry.line]), call.isOver else { return nil }
        if let begin = begins[entry.call], let first = KeptCall(line: lines[begin]) { call.began = first.began }
        return call
    }

    /// Whether a text may be a part of a record, regardless of case; false only if it is none.
    public func mayContain(_ text: String, _ entry: Entry) -> Bool {
        let wanted = Array(text.lowercased().utf8)
        // What JSON escapes, and what has other cases than ASCII, is found by parsing.
        guard let first = wanted.first, wanted.allSatisfy({ $0 < 0x80 && $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C })
        else { return true }
        let line = lines[entry.line].utf8.span
        guard line.count >= wanted.count else { return false }
        for start in 0...(line.count - wanted.count) where Self.small(line[start]) == first {
            if wanted.indices.allSatisfy({ Self.small(line[start + $0]) == wanted[$0] }) { return true }
        }
        return line.indices.contains { line[$0] >= 0x80 }
    }

    private static func small(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte + 0x20 : byte }

    // A quotation mark within a text is escaped, so these are members wherever they are found.
    private static let name = Array("\"call\":\"".utf8)
    private static let end = Array("\"ended\":".utf8)

    /// What comes after a text, as long as it is part of the value; nil without the text.
    private static func value(
        after key: [UInt8], in line: Span<UInt8>, while isPart: (UInt8) -> Bool
    ) -> String? {
        guard line.count >= key.count else { return nil }
        for start in 0...(line.count - key.count) where line[start] == key[0] {
            guard key.indices.allSatisfy({ line[start + $0] == key[$0] }) else { continue }
            var end = start + key.count
            while end < line.count, isPart(line[end]) { end += 1 }
            return String(decoding: (start + key.count..<end).map { line[$0] }, as: UTF8.self)
        }
        return nil
    }
}
