package import NIOCore
package import NIOHTTP1

/// The service behind a server. On the listener's event loop.
package protocol HTTPService: AcceptWatch {
    /// Takes a connection that was just accepted.
    ///
    /// - Returns: What answers on it, which may be an object for each connection.
    /// - Throws: If there are too many connections; this one is closed.
    func accept(_ channel: any Channel) throws -> any ConnectionService
}

/// What answers on one connection of a server. On the connection's event loop.
package protocol ConnectionService: AnyObject {
    /// Bounds what waits for the client together with what waits for others.
    var outbound: any OutboundWatch { get }

    /// How many bytes the body of a request may have. Asked only if a stranger's body might not be enough; more than that
    /// means that the client is admitted.
    func bodyLimit(of head: HTTPRequestHead) -> Int

    /// Answers a request, sooner or later, exactly once.
    func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void)

    /// The client of a request that has no answer yet is gone.
    func abandon(_ request: HTTPRequest.Number)

    /// Words the answer to a request that was not read to its end.
    ///
    /// - Parameter limit: What ``bodyLimit(of:)`` said.
    func refusal(
        _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
    ) -> HTTPAnswer

    /// Whether a request for a WebSocket, which keeps to RFC 6455, opens one: by its path, its host and its origin. One that
    /// does not is answered like any other.
    func opensWebSocket(_ head: HTTPRequestHead, on channel: any Channel) -> Bool

    /// Additional header fields of the answer that opens a WebSocket, as a subprotocol among those that the request offers.
    func webSocketHeaders(for head: HTTPRequestHead) -> HTTPHeaders

    /// Makes the WebSocket that a request has opened.
    func makeWebSocket(_ meter: InboundMeter) -> WebSocket
}

/// One HTTP request, complete.
package struct HTTPRequest: Sendable {
    /// Names a request, in this process and, being random, in logs of several.
    package struct Number: Hashable, Sendable {
        package let value: UInt64

        init() { value = .random(in: 0...(.max)) }
    }

    package let head: HTTPRequestHead
    package let body: [UInt8]
    package let number: Number

    /// The path, without the query.
    package var path: String { String(head.uri.prefix { $0 != "?" }) }
}

/// One HTTP response, without the headers that every response has.
package struct HTTPAnswer: Sendable {
    package var status: HTTPResponseStatus
    package var headers: HTTPHeaders
    package var contentType: String
    package var cacheControl: String
    package var body: [UInt8]
    /// Whether the connection is closed after it, though its client would keep it.
    package var endsConnection = false
    /// Takes over the body: it is what the stream sends, after ``body``. The connection ends with it.
    package var stream: (@Sendable (HTTPStream) -> Void)?
    /// The bytes of a body that the stream sends, if that is known; a client finds out by it whether it has all. The answer to a `HEAD`
    /// has it, too, and no stream.
    package var streamBytes: Int?

    /// - Parameters:
    ///   - headers: Fields in addition to the type, the length, the cache control and those of ``SecurityHeaders``.
    ///   - contentType: Sent with every body.
    package init(
        status: HTTPResponseStatus, headers: HTTPHeaders = [:],
        contentType: String = "application/json; charset=utf-8", cacheControl: String = "no-store", body: [UInt8]
    ) {
        self.status = status
        self.headers = headers
        self.contentType = contentType
        self.cacheControl = cacheControl
        self.body = body
    }
}
