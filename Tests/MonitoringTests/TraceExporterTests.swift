import ConfigReader
import Foundation
import Logging
import NIOHTTP1
import TestSupport
import Testing

@testable import Monitoring
@testable import Tracing

@Suite("Traces to a collector", .timeLimit(.minutes(1)))
struct TraceExporterTests {
    /// Requests leave, and are tried again, after milliseconds.
    private static let quick: TraceQueue.Limits = {
        var limits = TraceQueue.Limits()
        limits.delay = .milliseconds(1)
        limits.wait = .milliseconds(10)
        return limits
    }()

    private static func exporter(
        port: Int, limits: TraceQueue.Limits = quick, patience: Duration = .seconds(30), logger: Logger? = nil,
        _ change: (inout TraceConfiguration) -> Void = { _ in }
    ) throws -> TraceExporter {
        var configuration = TraceConfiguration(url: "http://127.0.0.1:\(port)")
        change(&configuration)
        return try TraceExporter(
            configuration, version: "1.2.3", limits: limits, patience: patience,
            logger: logger ?? Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private static func trace(_ number: UInt64) throws -> Trace {
        let span = TraceSpan(try #require(SpanID(number)), "call \(number)", from: 1, to: 2)
        return Trace(try #require(TraceID(high: 0, low: number)), [span])
    }

    @Test("A trace is posted as OTLP's protobuf to /v1/traces, with the token")
    func post() async throws {
        let collector = try await ScriptedCollector.start()
        let exporter = try Self.exporter(port: collector.port) {
            $0.token = Secret("s3cret")
            $0.service = "desk"
        }
        exporter.take(try Self.trace(7))
        try await collector.wait(for: 1)
        let request = try #require(collector.requests.first)
        #expect(request.head.method == .POST && request.head.uri == "/v1/traces")
        #expect(request.head.headers.first(name: "content-type") == "application/x-protobuf")
        #expect(request.head.headers.first(name: "authorization") == "Bearer s3cret")
        let text = String(decoding: request.body, as: UTF8.self)
        #expect(text.contains("call 7") && text.contains("desk") && text.contains("1.2.3"))
        try await until { exporter.counts.exported == 1 }
        await exporter.stop()
        await collector.stop()
    }

    @Test("Another header has the token alone, and a path of the address is kept")
    func header() async throws {
        let collector = try await ScriptedCollector.start()
        let configuration: TraceConfiguration = {
            var configuration = TraceConfiguration(url: "http://127.0.0.1:\(collector.port)/otlp/traces?x=1")
            configuration.token = Secret("k")
            configuration.tokenHeader = "api-key"
            return configuration
        }()
        let exporter = try TraceExporter(
            configuration, version: "1", limits: Self.quick,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        exporter.take(try Self.trace(1))
        try await collector.wait(for: 1)
        let head = try #require(collector.requests.first).head
        #expect(head.uri == "/otlp/traces?x=1" && head.headers.first(name: "api-key") == "k")
        #expect(head.headers.first(name: "authorization") == nil)
        await exporter.stop()
        await collector.stop()
    }

    @Test(
        "A collector that answers 503 with Retry-After gets the same request again, and one that closes the connection, too"
    )
    func retry() async throws {
        let collector = try await ScriptedCollector.start([.status(503, ["retry-after": "0"]), .slam, .status(200)])
        let exporter = try Self.exporter(port: collector.port)
        exporter.take(try Self.trace(1))
        try await until { exporter.counts.exported == 1 }
        // A kept connection that ends costs a request more, because the collector may take spans twice.
        #expect(collector.requests.count >= 3 && Set(collector.requests.map(\.body)).count == 1)
        #expect(exporter.counts.refused == 0 && exporter.counts.unreachable == 0)
        await exporter.stop()
        await collector.stop()
    }

    @Test("What a collector refuses is dropped and counted, and the next trace is sent")
    func refused() async throws {
        let collector = try await ScriptedCollector.start([.status(400)])
        let exporter = try Self.exporter(port: collector.port)
        exporter.take(try Self.trace(1))
        try await until { exporter.counts.refused == 1 }
        exporter.take(try Self.trace(2))
        try await until { exporter.counts.exported == 1 }
        #expect(collector.requests.count == 2)
        await exporter.stop()
        await collector.stop()
    }

    @Test("A collector that is gone costs its traces after five requests, and one that comes back gets the next ones")
    func gone() async throws {
        let collector = try await ScriptedCollector.start()
        let port = collector.port
        await collector.stop()
        let exporter = try Self.exporter(port: port)
        exporter.take(try Self.trace(1))
        try await until { exporter.counts.unreachable == 1 }
        let back = try await ScriptedCollector.start(port: port)
        exporter.take(try Self.trace(2))
        try await until { exporter.counts.exported == 1 }
        await exporter.stop()
        await back.stop()
    }

    @Test(
        "A burst beyond what waits for the exporter's thread is dropped and counted; each other trace is kept or counted"
    )
    func burst() async throws {
        let collector = try await ScriptedCollector.start()
        // The queue has room for all.
        var limits = Self.quick
        (limits.traces, limits.bytes) = (1_000_000, 1 << 30)
        let exporter = try Self.exporter(port: collector.port, limits: limits)
        let trace = try Self.trace(2)
        let large = Trace(trace.id, Array(repeating: try #require(trace.spans.first), count: 100_000))
        // While its thread encodes a large one, others come.
        var taken = 0
        while exporter.counts.overflowed == 0 {
            exporter.take(taken % (2 * TraceExporter.mostUnencoded) == 0 ? large : trace)
            taken += 1
        }
        #expect(taken > TraceExporter.mostUnencoded)
        await exporter.stop(within: .seconds(30))
        let counts = exporter.counts
        #expect(counts.exported + counts.overflowed + counts.refused + counts.unreachable == taken)
        exporter.take(trace)
        #expect(exporter.counts == counts)
        await collector.stop()
    }

    @Test(
        "A collector that hangs is given up, while traces are taken at once; the end waits for it no longer than it may"
    )
    func hangs() async throws {
        let collector = try await ScriptedCollector.start(Array(repeating: .silence, count: 100))
        var limits = Self.quick
        limits.attempts = 2
        let exporter = try Self.exporter(port: collector.port, limits: limits, patience: .milliseconds(50))
        exporter.take(try Self.trace(1))
        try await until { exporter.counts.unreachable == 1 }
        await exporter.stop()

        let patient = try Self.exporter(port: collector.port, patience: .seconds(3_600))
        for number in 1...2_000 { patient.take(try Self.trace(UInt64(number))) }
        try await until { patient.counts.overflowed > 0 }
        await patient.stop(within: .milliseconds(10))
        #expect(patient.counts.exported == 0)
        await collector.stop()
    }

    @Test("The traces of the last calls are sent at the end")
    func flush() async throws {
        let collector = try await ScriptedCollector.start()
        let exporter = try Self.exporter(port: collector.port, limits: TraceQueue.Limits())
        for number in 1...150 { exporter.take(try Self.trace(UInt64(number))) }
        await exporter.stop(within: .seconds(30))
        #expect(exporter.counts.exported == 150)
        await collector.stop()
    }

    @Test("A file of certificates that is not there is an error with its name")
    func roots() throws {
        let error = #expect(throws: TraceExporterError.self) {
            try Self.exporter(port: 1) { $0.trustRoots = "/nowhere/roots.pem" }
        }
        #expect(error?.description == "traces.trust_roots \"/nowhere/roots.pem\": there is no such file")
    }

    @Test("Reading the section notes each problem at its line and key")
    func problems() throws {
        struct Root: ConfigKeys {
            let traces = ConfigKey.section("traces", TraceConfiguration.Keys.self, "")
        }
        func read(_ lines: String) throws -> (TraceConfiguration?, [ConfigProblem]) {
            let document = try ConfigDocument.read(text: "traces:\n\(lines)", file: "device.yaml")
            var problems: [ConfigProblem] = []
            let root = KeyedSection(document, Root.self, &problems)
            let configuration = root.value(\.traces, &problems).flatMap { TraceConfiguration($0, &problems) }
            return (configuration, problems)
        }
        let (usual, none) = try read("  url: http://127.0.0.1:4318")
        #expect(none.isEmpty && usual == TraceConfiguration(url: "http://127.0.0.1:4318"))
        for (lines, key, line) in [
            ("  sample: 1", "traces.url", 2), ("  url: http://127.0.0.1:4318\n  sample: 1.5", "traces.sample", 3),
            ("  url: http://127.0.0.1:4318\n  parents: some", "traces.parents", 3),
            ("  url: http://127.0.0.1:4318\n  token_header: api-key", "traces.token_header", 3),
            ("  url: http://127.0.0.1:4318\n  token_env: PATH\n  token_header: Host", "traces.token_header", 4),
            ("  url: http://192.0.2.1:4318\n  token_env: PATH", "traces.url", 2),
            ("  url: http://192.0.2.1:4318", "traces.url", 2), ("  url: http://user:pw@host/", "traces.url", 2),
        ] {
            let (_, problems) = try read(lines)
            #expect(
                problems.count == 1 && problems.first?.key == key && problems.first?.line == line,
                "\(lines): \(problems)")
            #expect(!"\(problems)".contains("pw"))
        }
    }
}
