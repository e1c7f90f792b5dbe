import CallAgent
import ConfigReader
import ControlWire
import Core
import Foundation
import Glibc
import HTTPTransport
import JSON
import Logging
import NIOCore
import NIOPosix
import Realtime
import TestSupport
import Testing

@testable import ControlPlane
@testable import DeviceControl

/// Clients of events on a Unix socket.
@Suite("Events over HTTP", .timeLimit(.minutes(2)))
struct EventStreamsTests {
    @Test("200 clients that come and go, some of them at once after their request, leave no client behind")
    func comeAndGo() async throws {
        try await withServer { server in
            for round in 0..<4 {
                var clients: [Client] = []
                for number in 0..<50 {
                    let client = try Client(server.path)
                    try client.send("GET /v1/events HTTP/1.1\r\nHost: device\r\n\r\n")
                    // The server finds out at different points of its answer.
                    if (number + round) % 2 == 0 { client.reset() } else { clients.append(client) }
                }
                for client in clients { try await until { client.received().contains("id: ") } }
                server.add(UInt64(round))
                for client in clients { try await until { client.received().contains("\"call\":\(round),") } }
                for client in clients { client.reset() }
                try await until { try await server.clients() == 0 }
            }
            #expect(try await server.dropped() == 0)
        }
    }

    @Test("The 101st client is refused, and one is taken when another has gone")
    func full() async throws {
        try await withServer { server in
            let clients = try (0..<EventStreams.limit).map { _ in try Client(server.path) }
            for client in clients {
                try client.send("GET /v1/events HTTP/1.1\r\nHost: device\r\n\r\n")
                try await until { client.received().contains("id: ") }
            }
            let late = try Client(server.path)
            try late.send("GET /v1/events HTTP/1.1\r\nHost: device\r\n\r\n")
            try await until { late.received().contains("too_many") }
            #expect(late.received().hasPrefix("HTTP/1.1 429"))
            clients[7].reset()
            try await until { try await server.clients() == EventStreams.limit - 1 }
            // The connection is kept, and asks again.
            try late.send("GET /v1/events HTTP/1.1\r\nHost: device\r\n\r\n")
            try await until { late.received().contains("id: ") }
        }
    }

    @Test("A client that never reads is dropped after 30 s and counted, and the others receive every event")
    func neverReads() async throws {
        try await withServer { server in
            let idle = try Client(server.path)
            let readers = try (0..<3).map { _ in try Client(server.path) }
            for client in readers + [idle] {
                try client.send("GET /v1/events?after=oldest HTTP/1.1\r\nHost: device\r\n\r\n")
            }
            try await until { try await server.clients() == 4 }
            // More than a socket's buffer has room for.
            let most: UInt64 = 9_000
            for call in 1...most { server.add(call) }
            for client in readers { try await until { client.received().contains("\"call\":\(most),") } }
            try await server.beat(after: .seconds(1))
            #expect(try await server.clients() == 4)
            try await server.beat(after: .seconds(31))
            #expect(try await server.clients() == 3)
            #expect(try await server.dropped() == 1)
            for client in readers {
                try await until { client.received().hasSuffix(": heartbeat\n\n\r\n") }
                let text = client.received()
                #expect(text.components(separatedBy: "event: answered").count == Int(most) + 1)
                #expect(!text.contains("gap"))
            }
            withExtendedLifetime(idle) {}
        }
    }

    // MARK: - A server without a device, and its clients

    private struct Absent: Error {}

    private func withServer(_ work: (Server) async throws -> Void) async throws {
        let text = """
            accounts: [{name: a, account: {anonymous: a, server: "http://127.0.0.1:1"}}]
            media: {realtime_priority: 0}
            """
        let configuration = try AccountsConfiguration.read(ConfigDocument.read(text: text, environment: { _ in nil }))
        let logger = Logger(label: "events") { _ in SwiftLogNoOpLogHandler() }
        let media = try SharedMedia(for: configuration.accounts.map(\.configuration), logger: logger)
        let accounts = AccountSet(configuration, media: media, logger: logger) { _ in throw Absent() }
        let server = try await Server(ControlRequestHandler(accounts, version: "1"), logger)
        do { try await work(server) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private final class Server: Sendable {
        let path: String
        private let store: EventStore
        private let streams: NIOLoopBound<EventStreams>
        private let service: NIOLoopBound<ControlHTTPService>
        private let loop: any EventLoop
        private let channel: any Channel
        private let socket: ControlSocket

        init(_ handler: ControlRequestHandler, _ logger: Logger) async throws {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent("e-\(UUID())/s").path
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            let store = await EventStore.open(folder: nil, logger: logger)
            let (streams, service, listener) = try await loop.submit {
                let streams = EventStreams(store, on: loop, logger: logger) { await handler.levels() }
                let desk = ControlDesk(
                    handler, ControlEventHub(), ControlFront(store, streams, on: loop))
                let service = ControlHTTPService(desk, ControlAdmission(), logger: logger)
                streams.start()
                let listener = HTTPListener(
                    service, tls: nil, budget: InboundBudget(limit: 1 << 20),
                    bounds: StrangerBounds(bodyBytes: 8_192, messageBytes: 1), messageBytes: 1)
                return (
                    NIOLoopBound(streams, eventLoop: loop), NIOLoopBound(service, eventLoop: loop),
                    NIOLoopBound(listener, eventLoop: loop)
                )
            }.get()
            let socket = try ControlSocket(path: path)
            channel = try await HTTPListener.listen(
                on: try #require(socket.takeDescriptor()), with: listener, on: loop)
            (self.store, self.streams, self.service) = (store, streams, service)
            (self.loop, self.socket, self.path) = (loop, socket, path)
        }

        func add(_ call: UInt64) { store.add(ControlCoding.line(.answered(call: call), atMilliseconds: 1)) }
        func clients() async throws -> Int { try await loop.submit { [streams] in streams.value.count }.get() }
        func dropped() async throws -> Int { try await loop.submit { [streams] in streams.value.dropped }.get() }

        /// Has heartbeats be sent, and clients be looked for that do not read, as if that much time had passed.
        func beat(after time: Duration) async throws {
            let now = MonotonicClock.now.advanced(by: time)
            try await loop.submit { [streams] in streams.value.beat(at: now) }.get()
        }

        func stop() async {
            try? await channel.close()
            try? await loop.submit { [streams, service] in
                streams.value.close()
                service.value.close()
            }.get()
            try? FileManager.default.removeItem(atPath: (path as NSString).deletingLastPathComponent)
        }
    }

    private final class Client {
        private struct Failed: Error {}

        private let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        private var bytes: [UInt8] = []
        private var isOpen = true

        init(_ path: String) throws {
            guard let address = UnixAddress(path), address.connect(descriptor) else { throw Failed() }
        }

        deinit { reset() }

        func send(_ text: String) throws {
            let bytes = Array(text.utf8)
            guard Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
                throw Failed()
            }
        }

        /// What has come so far.
        func received() -> String {
            var part = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = recv(descriptor, &part, part.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
                bytes += part[..<count]
            }
        }

        /// Closes the connection, with what was sent and not read.
        func reset() {
            if isOpen { close(descriptor) }
            isOpen = false
        }
    }
}
