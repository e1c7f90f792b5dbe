import CallAgent
import ConfigReader
import ControlWire
import Core
import Cryptography
import Foundation
import HTTPTransport
import JSON
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import ControlPlane
@testable import DeviceControl

@Suite("Webhooks", .timeLimit(.minutes(1)))
struct WebhookCourierTests {
    private static let secret = "a-secret-of-more-than-24-bytes"
    private static let previous = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("webhooks-\(UUID())").path
    private let logger = Logger(label: "webhooks") { _ in SwiftLogNoOpLogHandler() }

    @Test("Events are sent in order and signed, and what failed is sent again after a restart, with the same id")
    func delivery() async throws {
        defer { remove() }
        let server = try await Receiver()
        let webhook = try webhook(at: "http://127.0.0.1:\(server.port)/hook?x=1")
        var store: EventStore? = await EventStore.open(folder: folder, logger: logger)
        try await with([webhook], #require(store)) { office in
            for call in 1...3 { try add(UInt64(call), #require(store), office) }
            try await until { office.sum.delivered == 3 }
            server.status = .serviceUnavailable
            try add(4, #require(store), office)
            try await until { office.sum.failed == 1 }
            #expect(office.sum.delaySeconds != nil)
            try add(5, #require(store), office)
        }
        await store?.close(within: .seconds(50))
        store = nil
        server.status = .noContent
        let second = try await reopened()
        try await with([webhook], second) { office in
            try await until { office.sum.delivered == 2 }
            #expect(office.sum.gaps == 0)
        }
        let requests = server.requests
        #expect(requests.map(\.call) == [1, 2, 3, 4, 4, 5])
        #expect(requests[3].id == requests[4].id && Set(requests.map(\.id)).count == 5)
        for request in requests {
            #expect(request.signature == signature(of: request, Self.secret) && request.target == "/hook?x=1")
        }
        await server.stop()
    }

    @Test("While a secret is changed, what is sent is signed with both")
    func rotation() async throws {
        defer { remove() }
        let server = try await Receiver()
        let webhook = try webhook(at: "http://127.0.0.1:\(server.port)/", previous: Self.previous)
        let store = await EventStore.open(folder: folder, logger: logger)
        try await with([webhook], store) { office in
            add(1, store, office)
            try await until { office.sum.delivered == 1 }
        }
        let request = try #require(server.requests.first)
        let expected = [Self.secret, Self.previous].map { signature(of: request, $0) }.joined(separator: " ")
        #expect(request.signature == expected)
        await server.stop()
    }

    @Test("A server that does not answer holds up no other one; an event of a server that is gone is lost and counted")
    func independence() async throws {
        defer { remove() }
        let hanging = LoopbackListener()
        defer { close(hanging.descriptor) }
        let (good, gone) = (try await Receiver(), try await Receiver())
        gone.status = .gone
        let store = await EventStore.open(folder: folder, logger: logger)
        let webhooks = try [Int(hanging.port), good.port, gone.port].map {
            try webhook(at: "http://127.0.0.1:\($0)/")
        }
        try await with(webhooks, store) { office in
            for call in 1...3 { add(UInt64(call), store, office) }
            func figures(_ port: Int) -> WebhookFigures? {
                office.figures.first { $0.server == "127.0.0.1:\(port)" }
            }
            try await until { figures(good.port)?.delivered == 3 && figures(gone.port)?.lost == 3 }
            let stuck = try #require(figures(Int(hanging.port)))
            #expect(stuck.delivered == 0 && stuck.lost == 0 && stuck.delaySeconds != nil)
        }
        #expect(good.requests.map(\.call) == [1, 2, 3])
        await good.stop()
        await gone.stop()
    }

    @Test("A redirect is not followed, and is no success")
    func redirect() async throws {
        defer { remove() }
        let (server, target) = (try await Receiver(), try await Receiver())
        server.status = .temporaryRedirect
        server.location = "http://127.0.0.1:\(target.port)/"
        let store = await EventStore.open(folder: folder, logger: logger)
        try await with([webhook(at: "http://127.0.0.1:\(server.port)/")], store) { office in
            add(1, store, office)
            try await until { office.sum.failed == 1 }
        }
        #expect(target.requests.isEmpty)
        await server.stop()
        await target.stop()
    }

    @Test("A webhook that was removed and comes again begins with new events; one with another secret continues")
    func reload() async throws {
        defer { remove() }
        let server = try await Receiver()
        server.status = .serviceUnavailable
        let first = try webhook(at: "http://127.0.0.1:\(server.port)/")
        let store = await EventStore.open(folder: folder, logger: logger)
        try await with([first], store) { office in
            add(1, store, office)
            try await until { office.sum.failed == 1 }
            server.status = .ok
            var changed = first
            changed.previousSecret = Secret(Self.previous)
            await office.adopt([changed])
            try await until { office.sum.delivered == 1 }
            #expect(office.sum.failed == 1)
            await office.adopt([])
            #expect(files() == [])
            add(2, store, office)
            await office.adopt([first])
            try await until { files().count == 1 }
            add(3, store, office)
            try await until { office.sum.delivered == 2 }
        }
        #expect(server.requests.map(\.call) == [1, 1, 3])
        await server.stop()
    }

    @Test("If the disk takes nothing, events are sent all the same, and failed writes are counted")
    func fullDisk() async throws {
        defer { remove() }
        let server = try await Receiver()
        let webhook = try webhook(at: "http://127.0.0.1:\(server.port)/")
        let store = await EventStore.open(folder: folder, logger: logger)
        try await with([webhook], store) { office in
            // A file that is being written has another name until it is whole.
            try await until { !files().isEmpty }
            // What is written to a folder fails, as on a full disk.
            for name in ["events.log", files()[0]] {
                try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
                try FileManager.default.createDirectory(
                    atPath: "\(folder)/\(name)/x", withIntermediateDirectories: true)
            }
            for call in 1...2 { add(UInt64(call), store, office) }
            try await until { office.sum.delivered == 2 && store.failedWrites >= 3 }
        }
        #expect(server.requests.map(\.call) == [1, 2])
        await server.stop()
    }

    // MARK: - Parts

    private func remove() { try? FileManager.default.removeItem(atPath: folder) }

    private func files() -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
            .filter { $0.hasPrefix("webhook-") && !$0.hasSuffix(".new") }
    }

    private func signature(of request: Receiver.Request, _ secret: String) -> String {
        let key = WebhookSignature.key(of: secret) ?? []
        return "v1,"
            + Base64.text(
                Digest.hmacSHA256(key, Array("\(request.id).\(request.time).".utf8) + request.body))
    }

    private func webhook(at url: String, previous: String? = nil) throws -> ControlWebhook {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        func file(_ secret: String, _ name: String) throws -> String {
            try secret.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
            return "\(folder)/\(name)"
        }
        let previous = try previous.map { "previous_secret_file: \(try file($0, "previous"))" }
        let members = ["url: \"\(url)\"", "secret_file: \(try file(Self.secret, "secret"))", previous].compactMap { $0 }
        let text = """
            account: {anonymous: a, server: "http://127.0.0.1:1"}
            control:
              socket: default
              http: {history_folder: \(folder)}
              webhooks: [{\(members.joined(separator: ", "))}]
            """
        let configuration = try AccountsConfiguration.read(ConfigDocument.read(text: text, environment: { _ in nil }))
        return try #require(configuration.control?.webhooks.first)
    }

    private func add(_ call: UInt64, _ store: EventStore, _ office: WebhookOffice) {
        store.add(
            ControlCoding.line(.answered(call: call), atMilliseconds: Int64(Date().timeIntervalSince1970 * 1_000)))
        office.wake()
    }

    /// The thread that closed the folder may hold it for a moment.
    private func reopened() async throws -> EventStore {
        while true {
            let store = await EventStore.open(folder: folder, logger: logger)
            if store.durableCursor != nil { return store }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Has webhooks that have begun.
    private func with(
        _ webhooks: [ControlWebhook], _ store: EventStore, _ work: (WebhookOffice) async throws -> Void
    ) async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let office = WebhookOffice(store, folder: folder, on: loop, logger: logger)
        await office.adopt(webhooks)
        do {
            try await until { files().count == webhooks.count }
            try await work(office)
        } catch {
            await office.stop()
            throw error
        }
        await office.stop()
    }

    /// A server that keeps what it is sent.
    private final class Receiver: Sendable {
        struct Request {
            let id: String
            let time: String
            let signature: String
            let target: String
            let body: [UInt8]
            var call: Int64? {
                let body = try? JSONDecoder().decode(JSONValue.self, from: Data(body))
                guard case .integer(let call)? = body?["data"]?["call"] else { return nil }
                return call
            }
        }

        let port: Int
        private let channel: any Channel
        private let state: State

        private final class State: Sendable {
            let requests = Mutex<[Request]>([])
            let status = Mutex(HTTPResponseStatus.ok)
            let location = Mutex<String?>(nil)
        }

        init() async throws {
            let state = State()
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            let listener = try await loop.submit {
                NIOLoopBound(
                    HTTPListener(
                        Service(state), tls: nil, budget: InboundBudget(limit: 1 << 20),
                        bounds: StrangerBounds(bodyBytes: 8_192, messageBytes: 1), messageBytes: 1), eventLoop: loop)
            }.get()
            let address = try ListenAddress(host: "127.0.0.1", port: 0).resolve()
            channel = try await HTTPListener.listen(at: address, with: listener, on: loop)
            port = channel.localAddress?.port ?? 0
            self.state = state
        }

        var requests: [Request] { state.requests.withLock { $0 } }

        var status: HTTPResponseStatus {
            get { state.status.withLock { $0 } }
            set { state.status.withLock { $0 = newValue } }
        }

        var location: String? {
            get { state.location.withLock { $0 } }
            set { state.location.withLock { $0 = newValue } }
        }

        func stop() async { try? await channel.close() }

        private final class Service: PlainService {
            let acceptLog = AcceptLog(Logger(label: "webhooks") { _ in SwiftLogNoOpLogHandler() }, for: "webhooks")
            private let state: State

            init(_ state: State) { self.state = state }

            func accept(_ channel: any Channel) -> any ConnectionService { self }
            func bodyLimit(of head: HTTPRequestHead) -> Int { 8_192 }

            func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
                func field(_ name: String) -> String { request.head.headers.first(name: name) ?? "" }
                let taken = Request(
                    id: field("webhook-id"), time: field("webhook-timestamp"), signature: field("webhook-signature"),
                    target: request.head.uri, body: request.body)
                state.requests.withLock { $0.append(taken) }
                var answer = HTTPAnswer(status: state.status.withLock { $0 }, contentType: "text/plain", body: [])
                if let location = state.location.withLock({ $0 }) {
                    answer.headers.add(name: "location", value: location)
                }
                reply(answer)
            }

            func refusal(
                _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
            ) -> HTTPAnswer { HTTPAnswer(status: .payloadTooLarge, body: []) }
        }
    }
}

extension WebhookOffice {
    /// Of all servers.
    fileprivate var sum: WebhookFigures { figures.reduce(into: WebhookFigures(server: "")) { $0.add($1) } }
}
