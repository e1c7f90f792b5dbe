import Dispatch
import Glibc
import Synchronization

/// A web server on the IPv4 loopback that answers as a test wants, also in ways in which no server should.
public final class ScriptedWebServer: Sendable {
    /// A request, complete.
    public struct Request: Sendable, Equatable {
        /// Such as `POST`.
        public let method: String
        /// The path and the query.
        public let target: String
        /// Names in lower case.
        public let headers: [String: String]
        /// The body as text.
        public let body: String
    }

    /// What becomes of a request.
    public enum Answer: Sendable {
        /// A whole answer, after which the connection is closed.
        case body(String, status: Int = 200, headers: [String] = [])
        /// Bytes, likewise.
        case bytes([UInt8])
        /// Nothing, until the client gives up.
        case silence
        /// A body without end, as fast as the client takes it.
        case endless
        /// A byte every 50 ms, without end.
        case drip
    }

    private let listener = LoopbackListener()
    private let answer: @Sendable (Request) -> Answer
    private let received = Mutex<[Request]>([])
    private let written = Atomic<Int>(0)

    /// Its port.
    public var port: UInt16 { listener.port }
    /// Its address, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }
    /// Requests so far.
    public var requests: [Request] { received.withLock { $0 } }
    /// Bytes of endless bodies that were written.
    public var endlessBytes: Int { written.load(ordering: .relaxed) }

    /// Listens. Each connection has a thread and one request.
    public init(_ answer: @escaping @Sendable (Request) -> Answer) {
        self.answer = answer
        signal(SIGPIPE, SIG_IGN)
        let (listener, serve) = (listener, serve)
        DispatchQueue(label: "web").async {
            while true {
                let connection = listener.accept()
                guard connection >= 0 else { return }
                DispatchQueue(label: "web-connection").async { serve(connection) }
            }
        }
    }

    /// Ends accepting: later connections are refused.
    public func stop() {
        shutdown(listener.descriptor, Int32(SHUT_RDWR))
        close(listener.descriptor)
    }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        guard let request = Self.read(connection) else { return }
        received.withLock { $0.append(request) }
        switch answer(request) {
        case .body(let text, let status, let headers): Self.send(Array(text.utf8), status, headers, connection)
        case .bytes(let bytes): Self.send(bytes, 200, [], connection)
        case .silence: _ = Self.readSome(connection)
        case .endless:
            _ = Self.write(Array("HTTP/1.1 200 OK\r\n\r\n".utf8), connection)
            let block = [UInt8](repeating: 0x20, count: 65_536)
            while Self.write(block, connection) { written.add(block.count, ordering: .relaxed) }
        case .drip:
            _ = Self.write(Array("HTTP/1.1 200 OK\r\n\r\n<".utf8), connection)
            // For a minute, which no test waits for.
            for _ in 0..<1_200 where Self.write([0x20], connection) { usleep(50_000) }
        }
    }

    private static func send(_ body: [UInt8], _ status: Int, _ headers: [String], _ connection: Int32) {
        let head = ["HTTP/1.1 \(status) Status", "Content-Length: \(body.count)", "Connection: close"] + headers
        _ = write(Array((head + ["", ""]).joined(separator: "\r\n").utf8) + body, connection)
    }

    private static func write(_ bytes: [UInt8], _ connection: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(connection, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static func readSome(_ connection: Int32) -> [UInt8]? {
        var block = [UInt8](repeating: 0, count: 16_384)
        let count = Glibc.read(connection, &block, block.count)
        return count > 0 ? Array(block.prefix(count)) : nil
    }

    private static func read(_ connection: Int32) -> Request? {
        var bytes: [UInt8] = []
        while true {
            if let request = request(in: bytes) { return request }
            guard let more = readSome(connection) else { return nil }
            bytes += more
        }
    }

    private static func request(in bytes: [UInt8]) -> Request? {
        let end = Array("\r\n\r\n".utf8)
        guard let split = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { return nil }
        let lines = String(decoding: bytes[..<split], as: UTF8.self).split(separator: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        let body = bytes[(split + end.count)...]
        guard body.count >= Int(headers["content-length"] ?? "0") ?? 0 else { return nil }
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count > 1 else { return nil }
        return Request(
            method: String(words[0]), target: String(words[1]), headers: headers,
            body: String(decoding: body, as: UTF8.self))
    }
}
