internal import CExpat

/// Reads a document with libexpat.
public enum XMLReader {
    /// Reads a document.
    ///
    /// A document type is refused where it begins, so that no entity is ever declared or expanded, and nothing outside the
    /// text is looked at. Comments and processing instructions are passed over.
    ///
    /// - Parameters:
    ///   - bytes: Any bytes; nothing in them can trap. UTF-8, UTF-16, ISO-8859-1 or US-ASCII, as the text declares.
    ///   - limits: What the document may be.
    /// - Returns: The root.
    public static func root(of bytes: [UInt8], within limits: XMLLimits) throws(XMLFault) -> XMLElement {
        guard bytes.count <= limits.bytes else {
            throw XMLFault(.tooMuch, line: 0, "a document has \(limits.bytes) bytes at most")
        }
        guard let parser = unsafe XML_ParserCreate(nil) else {
            throw XMLFault(.tooMuch, line: 0, "there is no memory for a parser")
        }
        defer { unsafe XML_ParserFree(parser) }
        let tree = unsafe GrowingTree(limits, parser)
        let status = unsafe bytes.withUnsafeBytes { bytes in
            withExtendedLifetime(tree) {
                tree.listen()
                return unsafe XML_Parse(
                    parser, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count), 1)
            }
        }
        if let fault = tree.fault { throw fault }
        guard status == XML_STATUS_OK, let root = tree.root else {
            let line = unsafe Int(clamping: XML_GetCurrentLineNumber(parser))
            let reason = unsafe XML_ErrorString(XML_GetErrorCode(parser)).map { unsafe String(cString: $0) }
            throw XMLFault(.malformed, line: line, "the text is not XML: \(reason ?? "it cannot be parsed")")
        }
        return root
    }
}

/// The part of a document that the parser has reported. The parser calls it only within ``XMLReader/root(of:within:)``,
/// on the thread that called that.
@safe
private final class GrowingTree {
    /// An element whose end has not come yet.
    private struct OpenElement {
        let name: String
        let attributes: [XMLElement.Attribute]
        let line: Int
        var children: [XMLElement] = []
        var text = ""
    }

    private(set) var root: XMLElement?
    private(set) var fault: XMLFault?
    private let limits: XMLLimits
    private let parser: XML_Parser
    private var open: [OpenElement] = []
    private var elements = 0

    init(_ limits: XMLLimits, _ parser: XML_Parser) {
        self.limits = limits
        unsafe self.parser = unsafe parser
    }

    /// Registers this object's handlers with the parser.
    func listen() {
        unsafe XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        unsafe XML_SetElementHandler(
            parser,
            { context, name, attributes in
                unsafe GrowingTree.at(context)?.begin(name, attributes)
            },
            { context, _ in unsafe GrowingTree.at(context)?.end() })
        unsafe XML_SetCharacterDataHandler(parser) { context, text, count in
            unsafe GrowingTree.at(context)?.append(UnsafeBufferPointer(start: text, count: Int(count)))
        }
        unsafe XML_SetStartDoctypeDeclHandler(parser) { context, _, _, _, _ in
            unsafe GrowingTree.at(context)?.stop(.documentType, "a document type is not allowed here")
        }
    }

    private static func at(_ context: UnsafeMutableRawPointer?) -> GrowingTree? {
        unsafe context.map { unsafe Unmanaged<GrowingTree>.fromOpaque($0).takeUnretainedValue() }
    }

    private func stop(_ kind: XMLFault.Kind, _ words: String) {
        guard fault == nil else { return }
        fault = XMLFault(kind, line: line, words)
        _ = unsafe XML_StopParser(parser, 0)
    }

    private var line: Int { unsafe Int(clamping: XML_GetCurrentLineNumber(parser)) }

    /// - Parameter list: Names and values in turn, and then nothing.
    private func begin(
        _ name: UnsafePointer<XML_Char>?, _ list: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?
    ) {
        // Calls may follow after the parser was stopped.
        guard fault == nil, let name = unsafe name else { return }
        elements += 1
        guard elements <= limits.elements else {
            return stop(.tooMuch, "a document has \(limits.elements) elements at most")
        }
        guard open.count < limits.depth else {
            return stop(.tooMuch, "elements are nested at most \(limits.depth) deep")
        }
        var attributes: [XMLElement.Attribute] = []
        var index = 0
        while let key = unsafe list?[index], let value = unsafe list?[index + 1] {
            guard attributes.count < limits.attributes else {
                return stop(.tooMuch, "an element has \(limits.attributes) attributes at most")
            }
            attributes.append(unsafe XMLElement.Attribute(String(cString: key), String(cString: value)))
            index += 2
        }
        open.append(OpenElement(name: unsafe String(cString: name), attributes: attributes, line: line))
    }

    private func end() {
        guard fault == nil, let ended = open.popLast() else { return }
        let element = XMLElement(
            ended.name, attributes: ended.attributes, children: ended.children, text: ended.text, line: ended.line)
        if open.isEmpty {
            root = element
        } else {
            open[open.count - 1].children.append(element)
        }
    }

    private func append(_ text: UnsafeBufferPointer<XML_Char>) {
        guard fault == nil, !open.isEmpty else { return }
        // The parser gives whole characters.
        open[open.count - 1].text += unsafe String(decoding: text.lazy.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
