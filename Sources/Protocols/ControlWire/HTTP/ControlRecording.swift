/// Which bytes of a file a request is about (RFC 9110 §14).
public enum ByteSelection: Hashable, Sendable {
    /// All.
    case whole
    /// Those with these numbers, one at least.
    case part(Range<Int>)
    /// None: the range begins behind the file's end.
    case unsatisfiable

    /// Reads the field `Range`.
    ///
    /// Several ranges, other units and what is no range select the whole file, as §14.2 allows.
    ///
    /// - Parameters:
    ///   - field: Nil without one.
    ///   - bytes: The length of the file.
    public init(_ field: String?, of bytes: Int) {
        guard let field, field.lowercased().hasPrefix("bytes="),
            let (first, last) = Self.numbers(field.dropFirst("bytes=".count))
        else {
            self = .whole
            return
        }
        switch (first, last) {
        case (nil, let count?):
            self = count > 0 && bytes > 0 ? .part(max(0, bytes - count)..<bytes) : .unsatisfiable
        case (let first?, let last):
            self = first < bytes ? .part(first..<min(last ?? bytes, bytes - 1) + 1) : .unsatisfiable
        case (nil, nil): self = .whole
        }
    }

    /// The two numbers of a range; nil if it is none, or its end is before its beginning.
    private static func numbers(_ text: Substring) -> (first: Int?, last: Int?)? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        let numbers = ends.map { end -> Int?? in
            guard !end.isEmpty else { return .some(nil) }
            guard end.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            // A number that is too large is behind every end.
            return Int(end) ?? Int.max
        }
        guard let first = numbers[0], let last = numbers[1] else { return nil }
        if let first, let last, last < first { return nil }
        return (first, last)
    }
}

/// A request for the sound of a recorded call.
public struct ControlRecordingQuery: Hashable, Sendable {
    /// The name of the call's record.
    public let record: String
    /// The number of the recording in it, from 1.
    public let number: Int
    /// The account that is meant; nil for all.
    public let account: String?
    /// The field `Range`.
    private let range: String?
    /// The field `If-Range`.
    private let condition: String?

    /// Recordings that a record names at most.
    public static let most = 16

    init(record: String, number: Int, account: String?, range: String?, condition: String?) {
        self.record = record
        self.number = number
        self.account = account
        self.range = range
        self.condition = condition
    }

    /// The head of the answer, without a body, and the bytes of the file that are its body; nil if the answer is complete.
    ///
    /// - Parameters:
    ///   - bytes: The length of the file.
    ///   - entityTag: The same as long as the file has the same bytes, and with quotation marks.
    ///   - contentType: The file's media type.
    public func head(
        of bytes: Int, entityTag: String, contentType: String
    ) -> (answer: ControlHTTPAnswer, body: Range<Int>?) {
        // A part of another version of the file is of no help to the client (RFC 9110 §13.1.5).
        let isSame = condition.map { $0 == entityTag } ?? true
        var fields: [ControlHTTPAnswer.Field] = [.init("Accept-Ranges", "bytes"), .init("ETag", entityTag)]
        func answer(_ status: Int) -> ControlHTTPAnswer {
            var answer = ControlHTTPAnswer(status: status, contentType: contentType, body: [])
            answer.fields = fields
            return answer
        }
        switch ByteSelection(isSame ? range : nil, of: bytes) {
        case .whole: return (answer(200), 0..<bytes)
        case .part(let part):
            fields.append(.init("Content-Range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(bytes)"))
            return (answer(206), part)
        case .unsatisfiable:
            let problem = ControlProblem(.rangeNotSatisfiable, "the recording has \(bytes) bytes; begin within them")
            var answer = problem.answer
            answer.fields += [.init("Content-Range", "bytes */\(bytes)")]
            return (answer, nil)
        }
    }
}

/// A recording that a record names.
public struct ControlRecording: Codable, Hashable, Sendable {
    /// Its number in the record, from 1.
    public var number: Int
    /// The file on the device's machine, as it was named when the call ended.
    public var file: String
    /// When it began, in milliseconds since 1970.
    public var began: Int64

    enum CodingKeys: String, CodingKey {
        case number, file
        case began = "began_ms"
    }

    /// Names a recording.
    public init(number: Int, file: String, began: Int64) {
        self.number = number
        self.file = file
        self.began = began
    }
}
