import ConfigReader
import Foundation
import HTTPTransport
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Monitoring

@Suite("The server of metrics and health", .timeLimit(.minutes(1)))
struct MonitoringServerTests {
    private static let load = Metric("load_ratio", .gauge, "Load")

    private struct Answer {
        let head: String
        let body: String
        var status: Int { Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0 }
    }

    /// A process that works, except for what a test changes of it.
    private static func process(
        isAlive: @escaping @Sendable () async -> Bool = { true },
        obstacles: @escaping @Sendable () async -> [String] = { [] }
    ) -> MonitoredProcess {
        MonitoredProcess(measure: { $0.add(load, 0.5) }, isAlive: isAlive, obstacles: obstacles)
    }

    private static func start(
        _ process: MonitoredProcess, token: String? = nil, patience: Duration = .seconds(60)
    ) async throws -> MonitoringServer {
        var configuration = MonitoringConfiguration(listen: ConfigEndpoint(host: "127.0.0.1", port: 0))
        configuration.token = token.map { Secret($0) }
        return try await MonitoringServer.start(
            configuration, of: process, version: "1.2.3", logger: Logger(label: "test"), patience: patience)
    }

    /// Sends a request on a connection of its own, and reads to the end.
    private static func ask(_ server: MonitoringServer, _ request: String) async throws -> Answer {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: server.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: request))
            var all = ByteBuffer()
            do {
                for try await var part in inbound { all.writeBuffer(&part) }
            } catch is IOError {}
            let text = String(buffer: all)
            let end = text.range(of: "\r\n\r\n")
            return Answer(
                head: String(text[..<(end?.lowerBound ?? text.endIndex)]),
                body: String(text[(end?.upperBound ?? text.endIndex)...]))
        }
    }

    private static func get(
        _ server: MonitoringServer, _ path: String, _ fields: String = "", host: String = "127.0.0.1"
    ) async throws -> Answer {
        try await ask(server, "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\(fields)\r\n")
    }

    @Test("The page has what the process measures, and what every process has")
    func metrics() async throws {
        let server = try await Self.start(Self.process())
        let answer = try await Self.get(server, "/metrics")
        #expect(answer.status == 200 && answer.head.contains("text/plain; version=0.0.4"))
        #expect(
            answer.body.contains("\nload_ratio 0.5\n")
                && answer.body.contains("\nhandset_build_info{version=\"1.2.3\"} 1\n"))
        for metric in ProcessMetrics.all {
            #expect(answer.body.contains("\n\(metric.name)"), "\(metric.name)")
        }
        await server.stop()
    }

    @Test("Where the kernel does not count open descriptors they are counted, up to a limit")
    func descriptors() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/handset-entries-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(ProcessMetrics.entries(of: folder, atMost: 3) == 0)
        for number in 1...3 { FileManager.default.createFile(atPath: "\(folder)/\(number)", contents: nil) }
        #expect(
            ProcessMetrics.entries(of: folder, atMost: 3) == 3 && ProcessMetrics.entries(of: folder, atMost: 2) == nil)
        #expect(ProcessMetrics.entries(of: "\(folder)/nowhere", atMost: 3) == nil)
        #expect(ProcessMetrics.entries(of: "/proc/self/fd", atMost: 16_384) ?? 0 > 3)
    }

    @Test("Health is 200 and ok, or 503 and what is in the way, a line each")
    func health() async throws {
        let good = try await Self.start(Self.process())
        for path in ["/livez", "/readyz", "/readyz?verbose"] {
            let answer = try await Self.get(good, path)
            #expect(answer.status == 200 && answer.body == "ok\n")
        }
        await good.stop()
        let bad = try await Self.start(Self.process(isAlive: { false }, obstacles: { ["no card", "draining"] }))
        let ready = try await Self.get(bad, "/readyz")
        #expect(ready.status == 503 && ready.body == "no card\ndraining\n")
        #expect(try await Self.get(bad, "/livez").status == 503)
        #expect(try await Self.get(bad, "/metrics").status == 200)
        await bad.stop()
    }

    @Test("A process that does not answer is asked once, and each client learns of it in time")
    func stuck() async throws {
        let asked = Counter()
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let server = try await Self.start(
            Self.process(isAlive: {
                await asked.count()
                for await _ in released {}
                return true
            }), patience: .milliseconds(50))
        for _ in 1...3 { #expect(try await Self.get(server, "/livez").status == 503) }
        #expect(await asked.value == 1)
        // What answers is not held up by it; a machine that stalls may take longer than the patience now and then.
        try await until { try await Self.get(server, "/readyz").status == 200 }
        release.finish()
        try await until { try await Self.get(server, "/livez").status == 200 }
        await server.stop()
    }

    @Test("With a token, metrics are for its bearer, and health for everyone")
    func token() async throws {
        let server = try await Self.start(Self.process(), token: "quiet-42")
        for field in [
            "", "Authorization: Bearer quiet-43\r\n", "Authorization: Basic quiet-42\r\n", "Authorization: Bearer \r\n",
        ] {
            let answer = try await Self.get(server, "/metrics", field)
            #expect(answer.status == 401 && !answer.body.contains("load_ratio") && !answer.body.contains("quiet-42"))
        }
        for scheme in ["Bearer", "bearer"] {
            #expect(try await Self.get(server, "/metrics", "Authorization: \(scheme) quiet-42\r\n").status == 200)
        }
        #expect(try await Self.get(server, "/livez").status == 200)
        await server.stop()
    }

    @Test("A foreign host's name is refused, so that no page in a browser reads metrics by DNS rebinding")
    func rebinding() async throws {
        let server = try await Self.start(Self.process())
        #expect(try await Self.get(server, "/metrics", host: "evil.example").status == 421)
        for host in ["localhost:\(server.port)", "[::1]:9470", "10.1.2.3"] {
            #expect(try await Self.get(server, "/metrics", host: host).status == 200, "\(host)")
        }
        await server.stop()
    }

    @Test("What is no request for a page here is answered with a reason")
    func refusals() async throws {
        let server = try await Self.start(Self.process())
        #expect(try await Self.get(server, "/").status == 404)
        let posted = try await Self.ask(
            server, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        #expect(posted.status == 405 && posted.head.contains("GET, HEAD"))
        let long = try await Self.ask(
            server, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        #expect(long.status == 413)
        let head = try await Self.ask(server, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        #expect(head.status == 200 && head.body.isEmpty)
        let huge = try await Self.ask(
            server, "GET /\(String(repeating: "a", count: 1 << 20)) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(huge.status != 200)
        await server.stop()
    }

    @Test("Idle connections keep no client out, and a client that reads nothing holds up no other")
    func idle() async throws {
        let server = try await Self.start(Self.process())
        var idle: [any Channel] = []
        for _ in 1...100 {
            let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .channelOption(.autoRead, value: false).connect(host: "127.0.0.1", port: server.port).get()
            idle.append(channel)
            try? await channel.writeAndFlush(ByteBuffer(string: "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        }
        #expect(try await Self.get(server, "/metrics").status == 200)
        await server.stop()
        for channel in idle { try? await channel.close() }
    }

    @Test("A port that is in use is an error that says so")
    func portInUse() async throws {
        let server = try await Self.start(Self.process())
        let configuration = MonitoringConfiguration(listen: ConfigEndpoint(host: "127.0.0.1", port: server.port))
        let error = await #expect(throws: ListenError.self) {
            _ = try await MonitoringServer.start(
                configuration, of: Self.process(), version: "1", logger: Logger(label: "test"))
        }
        #expect(error?.code == .portInUse && "\(error as Any)".contains("ss -ltnp"))
        await server.stop()
    }
}

private actor Counter {
    private(set) var value = 0
    func count() { value += 1 }
}
