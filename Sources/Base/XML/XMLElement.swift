// XML: small XML documents, read by libexpat within limits, and without document types, so that there are no entities.

/// An element of a document, with its contents.
public struct XMLElement: Equatable, Sendable {
    /// One attribute of an element.
    public struct Attribute: Equatable, Sendable {
        /// Its name, with the prefix that it may have.
        public let name: String
        /// Its value, with references resolved.
        public let value: String

        /// Makes one.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Its name, with the prefix that it may have.
    public let name: String
    /// In the document's order; no name comes twice (XML 1.0 §3.1).
    public let attributes: [Attribute]
    /// The elements in it, in order.
    public let children: [XMLElement]
    /// The text in it and not in its children, joined.
    public let text: String
    /// The line on which it begins; 1-based.
    public let line: Int

    /// Makes one.
    public init(
        _ name: String, attributes: [Attribute] = [], children: [XMLElement] = [], text: String = "", line: Int = 1
    ) {
        self.name = name
        self.attributes = attributes
        self.children = children
        self.text = text
        self.line = line
    }

    /// The value of an attribute.
    public subscript(attribute name: String) -> String? { attributes.first { $0.name == name }?.value }
}

/// The limits of a document.
public struct XMLLimits: Equatable, Sendable {
    /// Bytes of the document.
    public var bytes: Int
    /// Elements within each other, the root among them.
    public var depth: Int
    /// Elements altogether.
    public var elements: Int
    /// Attributes of one element.
    public var attributes: Int

    /// Sets the limits, each at least 1.
    public init(bytes: Int, depth: Int, elements: Int, attributes: Int) {
        self.bytes = bytes
        self.depth = depth
        self.elements = elements
        self.attributes = attributes
    }
}

/// A text that is no document, or exceeds the limits of one. The message does not repeat the text.
public struct XMLFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of a fault.
    public enum Kind: Hashable, Sendable {
        /// The text is not XML.
        case malformed
        /// The text has a document type, which could define entities.
        case documentType
        /// The text is beyond a limit.
        case tooMuch
    }

    /// The kind.
    public let kind: Kind
    /// The line; 1-based, and 0 if the fault is in no one line.
    public let line: Int
    private let words: String

    init(_ kind: Kind, line: Int, _ words: String) {
        self.kind = kind
        self.line = line
        self.words = words
    }

    /// The fault, and its line.
    public var description: String { line > 0 ? "\(words), on line \(line)" : words }
}
