import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPTransport

/// One connection of an HTTP client without a network, in virtual time.
@Suite struct FetchHandlerTests {
    /// Keeps what is written, as a socket does whose buffer is full.
    private final class FullSocket: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var held: [EventLoopPromise<Void>] = []

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if let promise { held.append(promise) }
        }
    }

    private final class Connection {
        let loop = EmbeddedEventLoop()
        let channel: EmbeddedChannel
        let handler: FetchHandler
        var reports: [FetchHandler.Report] = []
        var idleEnds = 0

        init(_ first: (any ChannelHandler)? = nil) throws {
            channel = EmbeddedChannel(loop: loop)
            if let first { try channel.pipeline.syncOperations.addHandler(first) }
            handler = try FetchHandler.add(to: channel.pipeline.syncOperations)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            handler.idleEnd = { [unowned self] in idleEnds += 1 }
        }

        func send(
            _ method: HTTPMethod = .GET, body: [UInt8] = [], bodyBytes: Int = 10, acceptsPart: Bool = false,
            isLast: Bool = false
        ) throws {
            let endpoint = try HTTPEndpoint("http://server:8080")
            let bounds = HTTPFetch.Bounds(
                bodyBytes: bodyBytes, time: .seconds(10), silence: .seconds(2), acceptsPart: acceptsPart)
            let request = HTTPFetch.Request(method, endpoint, target: "/a b", headers: ["X": "y"], body: body)
            handler.begin(.init(request, bounds, isLast: isLast)) { [unowned self] in reports.append($0) }
        }

        func receive(_ text: String) {
            // Errors of the decoder reach the handler, and are thrown besides.
            _ = try? channel.writeInbound(ByteBuffer(string: text))
            loop.run()
        }

        func end() {
            channel.close(promise: nil)
            loop.run()
        }

        func sent() throws -> String {
            var text = ""
            while let part = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: part) }
            return text
        }

        /// `status body`, and `+` if the connection may be reused or `…` if a part is missing.
        var answer: String? {
            guard reports.count == 1, case .answered(let answer, let isReusable)? = reports.first else { return nil }
            return "\(answer.status) \(String(decoding: answer.body, as: UTF8.self))"
                + (isReusable ? "+" : "") + (answer.isWhole ? "" : "…")
        }

        /// The error, and `+` if the request may be sent again.
        var failure: String? {
            guard reports.count == 1, case .failed(let error, let maySendAgain)? = reports.first else { return nil }
            return "\(error)" + (maySendAgain ? "+" : "")
        }
    }

    @Test("A request has Host and Content-Length, and a target without spaces")
    func request() throws {
        let connection = try Connection()
        try connection.send(.POST, body: [0x68, 0x69])
        let text = try connection.sent()
        #expect(text.hasPrefix("POST /a%20b HTTP/1.1\r\nHost: server:8080\r\nX: y\r\nContent-Length: 2\r\n"))
        #expect(text.hasSuffix("\r\n\r\nhi") && !text.contains("Connection"))
    }

    @Test("Two requests follow each other on one connection")
    func reuse() throws {
        let connection = try Connection()
        try connection.send()
        connection.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        #expect(connection.reports.isEmpty)
        connection.receive("k")
        #expect(connection.answer == "200 ok+")
        connection.reports = []
        try connection.send()
        connection.receive("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n")
        #expect(connection.answer == "404 no+")
    }

    @Test(
        "Answers without a body end with their head",
        arguments: [(HTTPMethod.HEAD, 200), (.GET, 204), (.GET, 304)])
    func withoutBody(method: HTTPMethod, status: Int) throws {
        let connection = try Connection()
        try connection.send(method)
        connection.receive("HTTP/1.1 \(status) X\r\nContent-Length: 5\r\n\r\n")
        #expect(connection.answer == "\(status) +")
    }

    @Test("Informational answers before the final one are skipped")
    func informational() throws {
        let connection = try Connection()
        try connection.send()
        connection.receive("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
        #expect(connection.reports.isEmpty)
        connection.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        #expect(connection.answer == "200 ok+")
    }

    @Test(
        "What is no answer ends the connection behind 64 KiB, however it comes, and its request is not sent again",
        arguments: [
            "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", "\r\n",
            "\r\n\r\n\r\n\r\n\r\n\r\n",
        ])
    func endless(piece: String) throws {
        let connection = try Connection()
        try connection.send()
        var bytes = 0
        while bytes < 1_000_000, connection.reports.isEmpty {
            connection.receive(String(repeating: piece, count: 40))
            bytes += piece.utf8.count * 40
        }
        #expect(bytes <= 65_536 + piece.utf8.count * 40)
        #expect(connection.failure == "endless(limit: 65536)" && !connection.channel.isActive)
    }

    @Test("A head without end, and chunks with more beside their data than that, end the connection")
    func endlessParts() throws {
        let head = try Connection()
        try head.send()
        head.receive("HTTP/1.1 200 OK\r\n")
        for number in 0..<100 where head.reports.isEmpty {
            head.receive("X-\(number): \(String(repeating: "x", count: 1_000))\r\n")
        }
        #expect(head.failure == "endless(limit: 65536)")
        let chunks = try Connection()
        try chunks.send(bodyBytes: 20_000)
        chunks.receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in 0..<1_000 where chunks.reports.isEmpty {
            chunks.receive("1;\(String(repeating: "x", count: 1_000))\r\na\r\n")
        }
        #expect(chunks.failure == "endless(limit: 160000)")
    }

    @Test("A long answer that comes in large pieces with a late head counts, and so do the smallest chunks")
    func large() throws {
        let connection = try Connection()
        try connection.send(bodyBytes: 200_000)
        connection.receive("HTTP/1.1 200 OK\r\nX: \(String(repeating: "y", count: 60_000))\r\n")
        connection.receive("Content-Length: 200000\r\n\r\n" + String(repeating: "z", count: 100_000))
        connection.receive(String(repeating: "z", count: 100_000))
        #expect(connection.answer == "200 \(String(repeating: "z", count: 200_000))+")
        let small = try Connection()
        try small.send(bodyBytes: 20_000)
        small.receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in 0..<20 { small.receive(String(repeating: "1\r\na\r\n", count: 1_000)) }
        small.receive("0\r\n\r\n")
        #expect(small.answer == "200 \(String(repeating: "a", count: 20_000))+")
    }

    @Test("A server that sends provisional answers while nothing is asked is closed behind the same bytes")
    func idle() throws {
        let connection = try Connection()
        try connection.send()
        connection.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        for _ in 0..<100 { connection.receive(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 100)) }
        #expect(!connection.channel.isActive && connection.idleEnds == 1)
    }

    @Test(
        "A connection is not reused if either end wants it closed",
        arguments: ["HTTP/1.1 200 OK\r\nConnection: close\r\n", "HTTP/1.0 200 OK\r\n"])
    func closing(head: String) throws {
        let connection = try Connection()
        try connection.send()
        connection.receive(head + "Content-Length: 2\r\n\r\nok")
        #expect(connection.answer == "200 ok")
        let last = try Connection()
        try last.send(isLast: true)
        #expect(try last.sent().contains("\r\nConnection: close\r\n"))
        last.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        #expect(last.answer == "200 ok")
    }

    @Test("A body without a length ends with the connection")
    func untilClose() throws {
        let connection = try Connection()
        try connection.send()
        connection.receive("HTTP/1.1 200 OK\r\n\r\nok")
        #expect(connection.reports.isEmpty)
        connection.end()
        #expect(connection.answer == "200 ok")
    }

    @Test("An answer counts that has more behind it, and its connection is closed")
    func trailing() throws {
        for more in ["garbage", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"] {
            let connection = try Connection()
            try connection.send()
            connection.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + more)
            #expect(connection.answer == "200 ok")
            #expect(!connection.channel.isActive)
        }
    }

    @Test("What comes without a request closes the connection")
    func unasked() throws {
        let connection = try Connection()
        connection.receive("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        #expect(!connection.channel.isActive && connection.idleEnds == 1)
        try connection.send()
        #expect(connection.reports.count == 1 && connection.answer == nil)
    }

    @Test("An answer that comes before the request was sent counts, and its connection is not reused")
    func early() throws {
        let socket = FullSocket()
        let connection = try Connection(socket)
        try connection.send(.POST, body: [1, 2, 3])
        connection.receive("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        #expect(connection.answer == "413 no")
        for promise in socket.held { promise.succeed() }
    }

    @Test("A body that is too long fails and closes the connection, unless a part counts")
    func tooLong() throws {
        let answer = "HTTP/1.1 410 Gone\r\nContent-Length: 11\r\n\r\n01234567890"
        let connection = try Connection()
        try connection.send()
        connection.receive(answer)
        #expect(connection.failure == "tooLong(limit: 10)" && !connection.channel.isActive)
        let lenient = try Connection()
        try lenient.send(acceptsPart: true)
        lenient.receive(answer)
        #expect(lenient.answer == "410 …" && !lenient.channel.isActive)
    }

    @Test("A server is silent after the last part that it sent, not after the request")
    func silence() throws {
        let connection = try Connection()
        try connection.send()
        connection.loop.advanceTime(by: .milliseconds(1_900))
        connection.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        connection.loop.advanceTime(by: .milliseconds(1_900))
        #expect(connection.reports.isEmpty)
        connection.loop.advanceTime(by: .milliseconds(100))
        #expect(connection.failure == "tooLate" && !connection.channel.isActive)
    }

    @Test("A kept connection is not silent")
    func keptIsNotSilent() throws {
        let connection = try Connection()
        try connection.send()
        connection.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        connection.loop.advanceTime(by: .seconds(60))
        #expect(connection.answer == "200 ok+" && connection.channel.isActive)
    }

    @Test("A request may be sent again if it is repeatable or was not written, and nothing of an answer came")
    func ended() throws {
        let get = try Connection()
        try get.send()
        get.end()
        #expect(get.failure == "closed+")
        let post = try Connection()
        try post.send(.POST)
        post.end()
        #expect(post.failure == "closed")
        let socket = FullSocket()
        let unwritten = try Connection(socket)
        try unwritten.send(.POST)
        unwritten.end()
        #expect(unwritten.failure == "closed+")
        for promise in socket.held { promise.succeed() }
        let half = try Connection()
        try half.send()
        half.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        half.end()
        #expect(half.failure?.hasSuffix("+") == false)
    }

    @Test("What this end gives up is not sent again")
    func givenUp() throws {
        let connection = try Connection()
        try connection.send()
        connection.handler.giveUp(HTTPFetch.Failure.tooLate)
        #expect(connection.failure == "tooLate" && !connection.channel.isActive)
        #expect(connection.idleEnds == 0)
    }

    @Test("What is not HTTP fails as such")
    func notHTTP() throws {
        let connection = try Connection()
        try connection.send()
        connection.receive("220 mail.example ESMTP\r\n")
        guard case .failed(let error, _)? = connection.reports.first else {
            Issue.record("no failure")
            return
        }
        let endpoint = try HTTPEndpoint("http://server")
        #expect(TransportFailure(error, to: endpoint).kind == .notHTTP)
    }
}
