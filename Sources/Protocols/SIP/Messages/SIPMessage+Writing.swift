extension SIPMessage {
    /// The message as it is sent, with its `Content-Length` at the position of an earlier one, or at the end.
    ///
    /// No value can add a header or end the headers: line breaks in them become spaces.
    public var bytes: [UInt8] {
        var output: [UInt8] = []
        switch self {
        case .request(let request):
            output += Self.safe(request.method.rawValue + " " + request.uri.description) + " SIP/2.0\r\n".utf8
        case .response(let response): output += Self.safe("SIP/2.0 \(response.status) \(response.reason)") + [13, 10]
        }
        let body = body
        var hasLength = false
        for header in headers.all {
            let isLength = header.name == "Content-Length"
            if isLength, hasLength { continue }
            hasLength = hasLength || isLength
            output += Self.safe(header.name.text) + [0x3A, 0x20]
            output += isLength ? Array(String(body.count).utf8) : Self.safe(header.value)
            output += [13, 10]
        }
        if !hasLength { output += Array("Content-Length: \(body.count)\r\n".utf8) }
        output += [13, 10]
        return output + body
    }

    private static func safe(_ text: String) -> [UInt8] {
        text.utf8.map { $0 == 13 || $0 == 10 ? 0x20 : $0 }
    }
}
