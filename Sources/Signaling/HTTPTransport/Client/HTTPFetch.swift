package import Core
package import NIOCore
package import NIOHTTP1
internal import NIOPosix

/// One request to a server and its answer, on a connection of its own. ``HTTPClient`` keeps connections.
///
/// Redirects are not followed: the caller may be restricted in where it may send requests, and the answer must not widen that.
package enum HTTPFetch {
    /// What is sent, and where.
    package struct Request: Sendable {
        package var method: HTTPMethod
        package var endpoint: HTTPEndpoint
        /// The path and the query.
        package var target: String
        /// In addition to `Host`, `Content-Length` and `Connection`.
        package var headers: HTTPHeaders
        package var body: [UInt8]
        /// In the place of `body`, one that is overwritten in memory when it was sent, because it has secrets.
        package var secretBody: WipedBytes?
        /// Whether the server may receive it twice, so that it can be sent again if a kept connection fails. Otherwise that
        /// depends on the method (RFC 9110 §9.2.2).
        package var isRepeatable: Bool

        package init(
            _ method: HTTPMethod, _ endpoint: HTTPEndpoint, target: String, headers: HTTPHeaders = [:],
            body: [UInt8] = [], isRepeatable: Bool = false
        ) {
            self.method = method
            self.endpoint = endpoint
            self.target = target
            self.headers = headers
            self.body = body
            self.isRepeatable = isRepeatable || [.GET, .HEAD, .PUT, .DELETE, .OPTIONS, .TRACE].contains(method)
        }
    }

    /// What the server says.
    package struct Answer: Sendable {
        package let status: Int
        package let headers: HTTPHeaders
        package let body: [UInt8]
        /// Whether the body is complete; always, unless ``Bounds`` accept a part.
        package let isWhole: Bool
    }

    /// Why an answer does not count. ``TransportFailure`` explains it.
    package enum Failure: Error, Hashable, Sendable {
        /// It has more bytes than this.
        case tooLong(limit: Int)
        /// More bytes than this came before its head was complete, or around its body: provisional answers, or chunks without end.
        case endless(limit: Int)
        /// It did not come in time.
        case tooLate
        /// The connection was closed before the answer's end.
        case closed
    }

    /// How the answer is bounded.
    package struct Bounds: Sendable {
        let bodyBytes: Int
        let time: TimeAmount
        let connecting: TimeAmount
        let silence: TimeAmount
        let acceptsPart: Bool

        /// - Parameters:
        ///   - bodyBytes: The most that the answer's body may have.
        ///   - time: From now to the answer's end.
        ///   - connecting: For looking up the name and TCP; nil is `time`.
        ///   - silence: From the request, or any part of the answer, to the next part. The TLS handshake counts as silence.
        ///     Nil is `time`.
        ///   - acceptsPart: Whether an answer counts whose body is too long, too late or cut off.
        package init(
            bodyBytes: Int, time: TimeAmount, connecting: TimeAmount? = nil, silence: TimeAmount? = nil,
            acceptsPart: Bool = false
        ) {
            self.bodyBytes = bodyBytes
            self.time = time
            self.connecting = min(connecting ?? time, time)
            self.silence = min(silence ?? time, time)
            self.acceptsPart = acceptsPart
        }
    }

    /// Sends a request to the server at an address, which was looked up, and perhaps judged, before.
    package static func send(
        _ request: Request, to address: NIOCore.SocketAddress, trust: TLSTrust, within bounds: Bounds,
        on loop: any EventLoop
    ) -> EventLoopFuture<Answer> {
        let promise = loop.makePromise(of: Answer.self)
        let connecting = bootstrap(to: request.endpoint, trust, bounds, on: loop).connect(to: address)
        let fetched = connecting.flatMapThrowing { channel in
            let handler = try channel.pipeline.syncOperations.handler(type: FetchHandler.self)
            handler.begin(FetchHandler.Job(request, bounds, isLast: true)) { report in
                switch report {
                case .answered(let answer, _): promise.succeed(answer)
                case .failed(let error, _): promise.fail(error)
                }
            }
        }
        fetched.cascadeFailure(to: promise)
        let deadline = loop.scheduleTask(in: bounds.time) {
            connecting.whenSuccess { channel in
                (try? channel.pipeline.syncOperations.handler(type: FetchHandler.self))?.giveUp(Failure.tooLate)
            }
            promise.fail(Failure.tooLate)
        }
        promise.futureResult.whenComplete { _ in
            deadline.cancel()
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        return promise.futureResult
    }

    /// Prepares connections that have a ``FetchHandler``.
    static func bootstrap(
        to endpoint: HTTPEndpoint, _ trust: TLSTrust, _ bounds: Bounds, on loop: any EventLoop
    ) -> ClientBootstrap {
        ClientBootstrap(group: loop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connectTimeout(bounds.connecting)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if endpoint.isSecure {
                        try pipeline.addTLS(to: endpoint.host, trusting: trust, protocols: ["http/1.1"])
                    }
                    _ = try FetchHandler.add(to: pipeline)
                }
            }
    }
}
