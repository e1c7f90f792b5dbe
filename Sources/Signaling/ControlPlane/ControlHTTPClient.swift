package import ConfigReader
public import ControlWire
package import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A program's side of a control interface over HTTP, at a Unix socket or on TCP. Each request has a connection of its own.
public struct ControlHTTPClient: Sendable {
    /// An answer.
    public struct Answer: Sendable {
        /// The status, 100…599.
        public let status: Int
        /// The content.
        public let body: [UInt8]

        /// The value of the content.
        ///
        /// - Throws: ``ControlFault`` if it is a problem.
        public func value<Value: Decodable>(_ type: Value.Type) throws(ControlFault) -> Value {
            if status < 300, let value = ControlCoding.decode(type, from: body) { return value }
            throw fault
        }

        /// Why the request failed.
        public var fault: ControlFault {
            guard let problem = ControlCoding.decode(Problem.self, from: body) else {
                return ControlFault(.failed, "the answer cannot be read (status \(status))")
            }
            return ControlFault(ControlFault.Code(rawValue: problem.code), problem.detail)
        }

        private struct Problem: Decodable {
            let code: String
            let detail: String
        }
    }

    /// An event of a stream.
    public struct Event: Hashable, Sendable {
        /// Its cursor; nil for what has none.
        public var cursor: String?
        /// What kind of event it is.
        public var name = ""
        /// The event in JSON.
        public var json = ""
    }

    /// Where the process listens.
    private enum Place: Sendable {
        case socket(String)
        case network(HTTPEndpoint, token: Secret, TLSTrust)
    }

    private let place: Place
    private let owner: ControlSocketError.Owner
    /// For an answer: longer than the process takes at most.
    private static let patience = TimeAmount.seconds(15)
    /// Bytes of an answer: a page of rooms with their members has less than a tenth of it.
    private static let mostBytes = 4 << 20

    /// For the next bytes of a stream of events, which has a comment each 15 s.
    private static let silence = TimeAmount.seconds(60)
    private static let connecting = TimeAmount.seconds(10)

    /// Connects to the process that listens at `path`, with each request.
    public init(path: String, owner: ControlSocketError.Owner) { (place, self.owner) = (.socket(path), owner) }

    /// Connects to the process that listens on TCP, with each request.
    ///
    /// - Parameter trust: Of its certificate, if it has one.
    package init(
        _ endpoint: HTTPEndpoint, token: Secret, trusting trust: TLSTrust, owner: ControlSocketError.Owner
    ) {
        (place, self.owner) = (.network(endpoint, token: token, trust), owner)
    }

    /// Sends a request and waits for its answer.
    ///
    /// - Parameter body: JSON; nothing for a request without a body.
    public func ask(
        _ method: String, _ target: String, body: [UInt8] = []
    ) async throws(ControlSocketError) -> Answer {
        let channel = try await connect()
        let timeout = channel.channel.eventLoop.scheduleTask(in: Self.patience) { channel.channel.close(promise: nil) }
        defer { timeout.cancel() }
        do {
            return try await channel.executeThenClose { inbound, outbound in
                let unsent = await send(method, target, body, to: outbound)
                var (status, bytes) = (0, [UInt8]())
                for try await part in inbound {
                    switch part {
                    case .head(let head): status = Int(head.status.code)
                    case .body(let part): bytes += part.readableBytesView
                    case .end: return Answer(status: status, body: bytes)
                    }
                    guard bytes.count <= Self.mostBytes else { throw Ended("its answer is too long") }
                }
                throw unsent ?? Ended("it closed the connection without an answer")
            }
        } catch {
            throw lost(error)
        }
    }

    /// Receives events until the stream ends or the task is cancelled.
    ///
    /// - Returns: The answer in place of a stream, if the request failed.
    public func receive(
        _ target: String, _ take: (Event) async -> Void
    ) async throws(ControlSocketError) -> Answer? {
        let channel = try await connect()
        let loop = channel.channel.eventLoop
        func watch() -> Scheduled<Void> {
            loop.scheduleTask(in: Self.silence) { channel.channel.close(promise: nil) }
        }
        var timeout = watch()
        defer { timeout.cancel() }
        var status = 0
        do {
            return try await channel.executeThenClose { inbound, outbound in
                let unsent = await send("GET", target, [], to: outbound)
                var bytes: [UInt8] = []
                var text = EventStreamText()
                for try await part in inbound {
                    timeout.cancel()
                    timeout = watch()
                    switch part {
                    case .head(let head): status = Int(head.status.code)
                    case .body(let part) where status == 200:
                        for event in text.take(part.readableBytesView) { await take(event) }
                    case .body(let part): bytes += part.readableBytesView
                    case .end: return status == 200 ? nil : Answer(status: status, body: bytes)
                    }
                    guard bytes.count + text.waiting <= Self.mostBytes else { throw Ended("its answer is too long") }
                }
                if let unsent { throw unsent }
                return nil
            }
        } catch {
            // A process that ends closes the connection within the stream.
            if status == 200, let error = error as? HTTPParserError, error == .invalidEOFState { return nil }
            throw lost(error)
        }
    }

    private struct Ended: Error {
        let cause: String
        init(_ cause: String) { self.cause = cause }
    }

    private typealias Connection = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    private func connect() async throws(ControlSocketError) -> Connection {
        switch place {
        case .socket(let path): try await connect(to: path)
        case .network(let endpoint, _, let trust): try await connect(to: endpoint, trust)
        }
    }

    private func connect(to path: String) async throws(ControlSocketError) -> Connection {
        guard UnixAddress(path) != nil else {
            throw owned(ControlSocketError(.noDevice, path, "connect", cause: UnixAddress.tooLong))
        }
        do {
            return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(unixDomainSocketPath: path) { Self.connection(on: $0, with: nil) }
        } catch {
            if let error = error as? IOError {
                throw owned(ControlSocketError(.noDevice, path, "connect", errno: error.errnoCode))
            }
            throw owned(ControlSocketError(.noDevice, path, "connect", cause: "\(error)"))
        }
    }

    private func connect(
        to endpoint: HTTPEndpoint, _ trust: TLSTrust
    ) async throws(ControlSocketError) -> Connection {
        do {
            return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(Self.connecting)
                .connect(host: endpoint.host, port: endpoint.port) {
                    Self.connection(on: $0, with: endpoint.isSecure ? (endpoint.host, trust) : nil)
                }
        } catch {
            let cause = TransportFailure(error, to: endpoint).cause
            throw owned(ControlSocketError(.noDevice, endpoint.authority, "connect", cause: cause, isOnNetwork: true))
        }
    }

    private static func connection(
        on channel: any Channel, with tls: (host: String, trust: TLSTrust)?
    ) -> EventLoopFuture<Connection> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            if let tls { try pipeline.addTLS(to: tls.host, trusting: tls.trust, protocols: ["http/1.1"]) }
            try pipeline.addHTTPClientHandlers()
            return try Connection(wrappingChannelSynchronously: channel)
        }
    }

    /// - Returns: Why the request was not sent as a whole. The answer may be there all the same, and what is received says better than
    ///   this why a connection ended, such as that its certificate is not trusted.
    private func send(
        _ method: String, _ target: String, _ body: [UInt8],
        to outbound: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>
    ) async -> (any Error)? {
        var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: method), uri: target)
        switch place {
        case .socket: head.headers.add(name: "Host", value: "localhost")
        case .network(let endpoint, let token, _):
            head.headers.add(name: "Host", value: endpoint.authority)
            head.headers.add(name: "Authorization", value: "Bearer \(token.revealed)")
        }
        head.headers.add(name: "Content-Length", value: "\(body.count)")
        if !body.isEmpty { head.headers.add(name: "Content-Type", value: "application/json") }
        do {
            try await outbound.write(.head(head))
            if !body.isEmpty { try await outbound.write(.body(.byteBuffer(ByteBuffer(bytes: body)))) }
            try await outbound.write(.end(nil))
            return nil
        } catch {
            return error
        }
    }

    private func lost(_ error: any Error) -> ControlSocketError {
        switch place {
        case .socket(let path):
            let cause = (error as? Ended)?.cause ?? (error is HTTPParserError ? "it does not speak HTTP" : "\(error)")
            return owned(ControlSocketError(.lost, path, "ask the \(owner)", cause: cause))
        case .network(let endpoint, _, _):
            let cause = (error as? Ended)?.cause ?? TransportFailure(error, to: endpoint).cause
            return owned(
                ControlSocketError(.lost, endpoint.authority, "ask the \(owner)", cause: cause, isOnNetwork: true))
        }
    }

    private func owned(_ error: ControlSocketError) -> ControlSocketError {
        var error = error
        error.owner = owner
        return error
    }
}

/// Reads server-sent events (WHATWG HTML, §9.2), as ``EventText`` writes them.
struct EventStreamText {
    private var line: [UInt8] = []
    private var event = ControlHTTPClient.Event()

    /// Bytes of a line that is not complete.
    var waiting: Int { line.count }

    /// Takes bytes.
    ///
    /// - Returns: The events that are complete now.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [ControlHTTPClient.Event] {
        var events: [ControlHTTPClient.Event] = []
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                continue
            }
            if line.isEmpty {
                if !event.name.isEmpty { events.append(event) }
                event = ControlHTTPClient.Event()
            } else {
                take(String(decoding: line, as: UTF8.self))
            }
            line.removeAll(keepingCapacity: true)
        }
        return events
    }

    private mutating func take(_ line: String) {
        if line.hasPrefix("id: ") { event.cursor = String(line.dropFirst(4)) }
        if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
        if line.hasPrefix("data: ") { event.json = String(line.dropFirst(6)) }
    }
}
