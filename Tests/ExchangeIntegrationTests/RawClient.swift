import HTTPTransport
import NIOCore
import NIOPosix
import TLS

/// A client that sends any bytes, so that tests can also send wrong ones. For one test, one task.
final class RawClient {
    /// One WebSocket frame as it came.
    struct Frame: Equatable {
        var opcode: UInt8
        var payload: [UInt8]

        var text: String { String(decoding: payload, as: UTF8.self) }
        /// The code of a close frame.
        var closeCode: Int? {
            opcode == 8 && payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil
        }
    }

    /// One HTTP response.
    struct Response {
        var status = 0
        /// Names in lower case.
        var headers: [String: String] = [:]
        var body = ""
    }

    let channel: any Channel
    private var incoming: AsyncStream<[UInt8]>.Iterator
    private var buffer: [UInt8] = []

    private init(channel: any Channel, incoming: AsyncStream<[UInt8]>) {
        self.channel = channel
        self.incoming = incoming.makeAsyncIterator()
    }

    static func connect(port: Int, tls: TLSContext? = nil, reads: Bool = true) async throws -> RawClient {
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reads)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        try channel.pipeline.syncOperations.addTLS(to: "localhost", in: tls)
                    }
                    try channel.pipeline.syncOperations.addHandler(Collector(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return RawClient(channel: channel, incoming: stream)
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let continuation: AsyncStream<[UInt8]>.Continuation

        init(_ continuation: AsyncStream<[UInt8]>.Continuation) { self.continuation = continuation }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            continuation.yield(Array(unwrapInboundIn(data).readableBytesView))
        }

        func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            continuation.finish()
            context.close(promise: nil)
        }
    }

    func send(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    func close() { channel.close(promise: nil) }

    /// Waits until `count` bytes are there; false if the connection ends first.
    private func fill(_ count: Int) async -> Bool {
        while buffer.count < count {
            guard let more = await incoming.next() else { return false }
            buffer += more
        }
        return true
    }

    private func take(_ count: Int) -> [UInt8] {
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }

    // MARK: - HTTP

    func request(
        _ method: String, _ path: String, _ headers: [String: String] = [:], body: String = ""
    ) async -> Response {
        begin(method, path, headers, body: body)
        return await response()
    }

    /// Sends a request, whose response may be long in coming.
    func begin(_ method: String, _ path: String, _ headers: [String: String] = [:], body: String = "") {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        if !body.isEmpty { head += "Content-Length: \(body.utf8.count)\r\n" }
        send(Array((head + "\r\n" + body).utf8))
    }

    /// Reads one response; status 0 if the connection ends first.
    func response() async -> Response {
        var response = await headOnly()
        let length = response.status == 304 ? 0 : response.headers["content-length"].flatMap { Int($0) } ?? 0
        guard await fill(length) else { return response }
        response.body = String(decoding: take(length), as: UTF8.self)
        return response
    }

    /// Reads the head of one response; status 0 if the connection ends first.
    func headOnly() async -> Response {
        var response = Response()
        var head = ""
        while !head.hasSuffix("\r\n\r\n") {
            guard await fill(1) else { return response }
            head.unicodeScalars.append(Unicode.Scalar(take(1)[0]))
        }
        let lines = head.split(separator: "\r\n")
        response.status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            response.headers[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
        }
        return response
    }

    // MARK: - WebSocket

    /// Opens the WebSocket; answers with the response's status, which is 101 if it worked.
    func upgrade(_ path: String = "/v1/rtc", origin: String? = nil) async -> Int {
        let headers = origin.map { ["Origin": $0] } ?? [:]
        return await request(
            "GET", path,
            headers.merging([
                "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            ]) { $1 }
        ).status
    }

    func sendText(_ text: String) { sendFrame(1, Array(text.utf8)) }

    func sendFrame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, isMasked: Bool = true) {
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        let mask: UInt8 = isMasked ? 0x80 : 0
        switch payload.count {
        case ..<126: bytes.append(mask | UInt8(payload.count))
        case ..<65_536: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        default: bytes += [mask | 127] + (0..<8).map { UInt8(payload.count >> (56 - 8 * $0) & 255) }
        }
        let key: [UInt8] = [1, 2, 3, 4]
        if isMasked {
            bytes += key + payload.enumerated().map { $0.element ^ key[$0.offset % 4] }
        } else {
            bytes += payload
        }
        send(bytes)
    }

    /// The next frame; `nil` if the connection ends first.
    func frame() async -> Frame? {
        guard await fill(2) else { return nil }
        let head = take(2)
        var length = Int(head[1] & 0x7F)
        if length >= 126 {
            let size = length == 126 ? 2 : 8
            guard await fill(size) else { return nil }
            length = take(size).reduce(0) { $0 << 8 | Int($1) }
        }
        guard await fill(length) else { return nil }
        return Frame(opcode: head[0] & 0x0F, payload: take(length))
    }
}
