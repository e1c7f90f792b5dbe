import HTTPTransport
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A client's WebSocket, and what it has heard.
final class EchoClient: Sendable {
    enum Heard: Equatable, Sendable {
        case text(String)
        case binary([UInt8])
        case pong
        case closed(UInt16?)
        case failed(String)
    }

    let subprotocol: String?
    private let loop: any EventLoop
    private let socket: NIOLoopBound<WebSocket>
    private let log: Log

    final class Log: Sendable {
        let heard = Mutex<[Heard]>([])
        func note(_ heard: Heard) { self.heard.withLock { $0.append(heard) } }
    }

    private init(_ subprotocol: String?, _ loop: any EventLoop, _ socket: NIOLoopBound<WebSocket>, _ log: Log) {
        self.subprotocol = subprotocol
        self.loop = loop
        self.socket = socket
        self.log = log
    }

    /// - Parameter greeting: What it says when it is told that the socket is open.
    /// - Throws: ``TransportFailure``.
    static func open(
        _ url: String, messageBytes: Int = 1 << 20, outboundBytes: Int? = nil, headers: HTTPHeaders = [:],
        subprotocols: [String] = [], trustRootFile: String? = nil, openingTime: TimeAmount = .seconds(30),
        greeting: String? = nil
    ) async throws -> EchoClient {
        let endpoint = try HTTPEndpoint(url)
        let destination = WebSocket.Destination(
            endpoint, headers: headers, subprotocols: subprotocols, trust: try TLSTrust(trustRootFile: trustRootFile),
            openingTime: openingTime)
        let settings = WebSocket.Settings(.client, messageBytes: messageBytes, outboundBytes: outboundBytes)
        let (loop, log) = (EchoServer.group.next(), Log())
        let (socket, opened) = try await loop.submit {
            let socket = WebSocket(settings) { event in
                switch event {
                case .text(let bytes): log.note(.text(String(decoding: bytes, as: UTF8.self)))
                case .binary(let bytes): log.note(.binary(bytes))
                case .pong: log.note(.pong)
                case .closed(let code): log.note(.closed(code))
                case .failed(let error): log.note(.failed("\(TransportFailure(error, to: endpoint))"))
                case .opened(let socket): if let greeting { socket.send(Array(greeting.utf8)) }
                case .lifeSign, .refused, .fault, .silent: break
                }
            }
            let opened = WebSocket.connect(socket, to: destination, on: loop)
            return (NIOLoopBound(socket, eventLoop: loop), opened)
        }.get()
        do {
            return EchoClient(try await opened.get(), loop, socket, log)
        } catch {
            throw TransportFailure(error, to: endpoint)
        }
    }

    /// All that was heard, in order.
    var heard: [Heard] { log.heard.withLock { $0 } }

    func perform(_ work: @escaping @Sendable (WebSocket) -> Void) { loop.execute { [socket] in work(socket.value) } }

    func send(_ text: String) { perform { $0.send(Array(text.utf8)) } }
}
