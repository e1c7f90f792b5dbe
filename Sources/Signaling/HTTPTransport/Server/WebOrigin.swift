package import NIOHTTP1

/// Which web pages may use a server (RFC 6454): open a WebSocket (RFC 6455 §10.2), or read its answers.
package enum WebOrigin {
    /// A browser names the origin of the page that asks; programs name none, and may.
    ///
    /// - Parameter allowed: Origins such as `https://calls.example.org`, beside the server's own.
    package static func isAllowed(_ headers: HTTPHeaders, allowed: [String]) -> Bool {
        let origins = headers["Origin"]
        guard let origin = origins.first else { return true }
        guard origins.count == 1 else { return false }
        if listed(headers, in: allowed) != nil { return true }
        // Behind a proxy the scheme may be another outside than inside; the host is what the page was loaded from.
        guard let host = host(of: headers)?.lowercased() else { return false }
        return ["http://", "https://"].contains { $0 + host == origin.lowercased() }
    }

    /// The origin of the page that asks, if it is one of `allowed`.
    package static func listed(_ headers: HTTPHeaders, in allowed: [String]) -> String? {
        let origins = headers["Origin"]
        guard origins.count == 1, let origin = origins.first else { return nil }
        return allowed.contains { serialized($0) == origin.lowercased() } ? origin : nil
    }

    /// An origin as browsers send it: in lower case, without its scheme's own port (RFC 6454 §6.2).
    private static func serialized(_ origin: String) -> String {
        let text = origin.lowercased()
        for (scheme, port) in [("https://", ":443"), ("http://", ":80")] where text.hasPrefix(scheme) {
            return text.hasSuffix(port) ? String(text.dropLast(port.count)) : text
        }
        return text
    }

    /// Whether this is an origin of web pages: `https://` or `http://` and a host with or without a port, and no path.
    package static func isOrigin(_ text: String) -> Bool {
        guard let scheme = ["https://", "http://"].first(where: { text.lowercased().hasPrefix($0) }) else {
            return false
        }
        return HostName(header: String(text.dropFirst(scheme.count))) != nil
    }

    /// The `Host` header, if there is one and it is nothing but a host with or without a port.
    package static func host(of headers: HTTPHeaders) -> String? {
        headers.first(name: "Host").flatMap { isHost($0) ? $0 : nil }
    }

    /// Whether this can be a host with or without a port.
    package static func isHost(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { hostBytes.contains($0) }
    }

    private static let hostBytes = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]".utf8)
}

/// Lets pages of other origins read a server's answers (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol): the origins that the
/// configuration lists, and no others.
package struct OriginSharing: Sendable {
    private let origins: [String]
    private let methods: String
    private let requestHeaders: String
    private let answerHeaders: String

    /// For how long a browser may keep the answer to a preflight request, in seconds.
    package static let maxAge = 600

    /// - Parameters:
    ///   - origins: Those whose pages may read answers.
    ///   - methods: Those of requests.
    ///   - requestHeaders: Fields that pages may set.
    ///   - answerHeaders: Fields of answers that pages may read.
    package init(_ origins: [String], methods: [String], requestHeaders: [String], answerHeaders: [String]) {
        self.origins = origins
        self.methods = methods.joined(separator: ", ")
        self.requestHeaders = requestHeaders.joined(separator: ", ")
        self.answerHeaders = answerHeaders.joined(separator: ", ")
    }

    /// Adds the fields that the browser of a listed page needs. The other answers differ from those by their `Origin`, and say so.
    package func share(_ answer: inout HTTPAnswer, with request: HTTPRequestHead) {
        guard !origins.isEmpty else { return }
        answer.headers.add(name: "Vary", value: "Origin")
        guard let origin = WebOrigin.listed(request.headers, in: origins) else { return }
        answer.headers.add(name: "Access-Control-Allow-Origin", value: origin)
        answer.headers.add(name: "Access-Control-Expose-Headers", value: answerHeaders)
    }

    /// The answer to the request that a browser sends first, without the page's token; nil for any other.
    package func preflight(_ request: HTTPRequestHead) -> HTTPAnswer? {
        guard request.method == .OPTIONS, request.headers.contains(name: "Access-Control-Request-Method"),
            WebOrigin.listed(request.headers, in: origins) != nil
        else { return nil }
        return HTTPAnswer(
            status: .noContent,
            headers: [
                "Access-Control-Allow-Methods": methods, "Access-Control-Allow-Headers": requestHeaders,
                "Access-Control-Max-Age": "\(Self.maxAge)",
            ], body: [])
    }
}
