/// Memory of messages: their text, and the overhead of each of their parts. Estimates are on the high side.
enum MessageFootprint {
    /// A heap block of a string that is too long to be stored inline.
    private static let block = 48
    /// A header line, in an array that may have grown to twice of what it needs.
    private static let line = 2 * MemoryLayout<SIPHeaders.Header>.stride
    private static let parameter = 2 * MemoryLayout<SIPParameters.Parameter>.stride + 2 * block

    static func of(_ text: String) -> Int {
        let count = text.utf8.count
        return count > 15 ? count + block : 0
    }

    static func of(_ headers: SIPHeaders) -> Int {
        headers.all.reduce(block) { $0 + line + of($1.name.text) + of($1.name.key) + of($1.value) }
    }

    static func of(_ uri: AnyURI) -> Int {
        guard case .sip(let uri) = uri else { return uri.description.utf8.count + 4 * block }
        return uri.description.utf8.count + 4 * block + (uri.parameters.all.count + uri.headers.all.count) * parameter
    }
}

extension SIPRequest {
    /// Bytes that it takes up.
    var footprint: Int { MessageFootprint.of(uri) + MessageFootprint.of(headers) + body.count }
}

extension SIPResponse {
    /// Bytes that it takes up.
    var footprint: Int { MessageFootprint.of(reason) + MessageFootprint.of(headers) + body.count }
}
