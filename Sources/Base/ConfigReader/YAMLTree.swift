internal import CYAML

/// A YAML document as libyaml composes it: each node with the line it begins on.
indirect enum YAMLNode {
    /// `isPlain` marks text without quotes, some of which means null (YAML 1.2 §10.2.1.1).
    case scalar(String, isPlain: Bool, line: Int)
    case sequence([YAMLNode], line: Int)
    case mapping([(key: YAMLNode, value: YAMLNode)], line: Int)

    /// 1-based.
    var line: Int {
        switch self {
        case .scalar(_, _, let line), .sequence(_, let line), .mapping(_, let line): line
        }
    }
}

/// Text that is no YAML, or more than a configuration may be.
struct YAMLError: Error {
    /// 1-based; 0 if unknown.
    let line: Int
    let message: String
}

/// Reads the first document of a text with libyaml.
@safe
struct YAMLReader: ~Copyable {
    /// Values that a short text may have: aliases are expanded in place, and could make it grow without bound.
    private static let leastAllowed = 100_000
    /// A longer text may have a value for this many bytes. What is written without aliases has fewer: an entry `  - id: "a"` is three.
    private static let bytesPerValue = 4
    /// Deeper nesting is refused: none of our sections needs it, and an alias to its own parent would be endless.
    static let maximumDepth = 16

    private var document = unsafe yaml_document_t()
    private let allowedValues: Int
    private var valuesLeft: Int

    /// Returns nil for a text without any document.
    static func read(_ text: String) throws(YAMLError) -> YAMLNode? {
        var reader = YAMLReader(bytes: text.utf8.count)
        return try reader.load(text)
    }

    private init(bytes: Int) {
        allowedValues = max(Self.leastAllowed, bytes / Self.bytesPerValue)
        valuesLeft = allowedValues
    }

    private mutating func load(_ text: String) throws(YAMLError) -> YAMLNode? {
        // A byte order mark may begin a text (YAML 1.2 §5.2); some editors put one there unasked.
        let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        var bytes = Array(text.utf8)
        // A document is there to be freed even if what follows it is refused.
        var isLoaded = false
        defer { if isLoaded { unsafe yaml_document_delete(&document) } }
        let result = unsafe bytes.withUnsafeMutableBufferPointer { buffer -> Result<Void, YAMLError> in
            var parser = unsafe yaml_parser_t()
            guard unsafe yaml_parser_initialize(&parser) == 1 else {
                return .failure(YAMLError(line: 0, message: "cannot be parsed: out of memory"))
            }
            defer { unsafe yaml_parser_delete(&parser) }
            unsafe yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING)
            unsafe yaml_parser_set_input_string(&parser, buffer.baseAddress, buffer.count)
            guard unsafe yaml_parser_load(&parser, &document) == 1 else {
                return .failure(unsafe Self.error(of: parser, in: text))
            }
            isLoaded = true
            return unsafe Self.expectEnd(&parser, in: text)
        }
        try result.get()
        guard let root = unsafe yaml_document_get_root_node(&document) else { return nil }
        return try unsafe node(root, depth: 0)
    }

    private mutating func node(_ pointer: UnsafeMutablePointer<yaml_node_t>, depth: Int) throws(YAMLError) -> YAMLNode {
        let line = unsafe Int(pointer.pointee.start_mark.line) + 1
        valuesLeft -= 1
        guard valuesLeft > 0 else {
            throw YAMLError(line: line, message: "has more than \(allowedValues) values, counting aliases")
        }
        guard depth <= Self.maximumDepth else {
            throw YAMLError(line: line, message: "is nested more than \(Self.maximumDepth) levels deep")
        }
        switch unsafe pointer.pointee.type {
        case YAML_SEQUENCE_NODE:
            var elements: [YAMLNode] = []
            var item = unsafe pointer.pointee.data.sequence.items.start
            while let element = unsafe item, unsafe element < pointer.pointee.data.sequence.items.top {
                elements.append(try self.node(at: unsafe element.pointee, depth: depth + 1))
                unsafe item = element + 1
            }
            return .sequence(elements, line: line)
        case YAML_MAPPING_NODE:
            var entries: [(key: YAMLNode, value: YAMLNode)] = []
            var item = unsafe pointer.pointee.data.mapping.pairs.start
            while let pair = unsafe item, unsafe pair < pointer.pointee.data.mapping.pairs.top {
                let key = try self.node(at: unsafe pair.pointee.key, depth: depth + 1)
                entries.append((key, try self.node(at: unsafe pair.pointee.value, depth: depth + 1)))
                unsafe item = pair + 1
            }
            return .mapping(entries, line: line)
        default:
            let scalar = unsafe pointer.pointee.data.scalar
            let text = unsafe String(
                decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
            return .scalar(text, isPlain: unsafe scalar.style == YAML_PLAIN_SCALAR_STYLE, line: line)
        }
    }

    private mutating func node(at index: Int32, depth: Int) throws(YAMLError) -> YAMLNode {
        guard let pointer = unsafe yaml_document_get_node(&document, index) else {
            throw YAMLError(line: 0, message: "cannot be parsed")
        }
        return try unsafe node(pointer, depth: depth)
    }

    /// A second document would be passed over in silence, so it is refused.
    private static func expectEnd(_ parser: inout yaml_parser_t, in text: String) -> Result<Void, YAMLError> {
        var next = unsafe yaml_document_t()
        guard unsafe yaml_parser_load(&parser, &next) == 1 else { return .failure(unsafe error(of: parser, in: text)) }
        defer { unsafe yaml_document_delete(&next) }
        guard let root = unsafe yaml_document_get_root_node(&next) else { return .success(()) }
        let line = unsafe Int(root.pointee.start_mark.line) + 1
        return .failure(YAMLError(line: line, message: "holds another document; one is expected"))
    }

    private static func error(of parser: borrowing yaml_parser_t, in text: String) -> YAMLError {
        let problem = unsafe parser.problem.map { unsafe String(cString: $0) } ?? "it cannot be parsed"
        if unsafe parser.error == YAML_READER_ERROR {
            let line = unsafe text.utf8.prefix(parser.problem_offset).count { $0 == UInt8(ascii: "\n") } + 1
            return YAMLError(line: line, message: "is not readable text: \(problem)")
        }
        let line = unsafe Int(parser.problem_mark.line) + 1
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        if line <= lines.count, lines[line - 1].prefix(while: \.isWhitespace).contains("\t") {
            return YAMLError(line: line, message: "begins with a tab; YAML is indented with spaces")
        }
        var place = ""
        if let context = unsafe parser.context {
            place = unsafe " (\(String(cString: context)) on line \(parser.context_mark.line + 1))"
        }
        return YAMLError(line: line, message: "is not valid YAML: \(problem)\(place)")
    }
}
