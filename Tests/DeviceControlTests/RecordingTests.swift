import CallAgent
import ConfigReader
import ControlWire
import Core
import Foundation
import Glibc
import HTTPTransport
import Logging
import NIOCore
import NIOPosix
import Realtime
import TestSupport
import Testing

@testable import ControlPlane
@testable import DeviceControl

/// Clients on a Unix socket that request recordings of calls that ended.
@Suite("Recordings over HTTP", .timeLimit(.minutes(2)))
struct RecordingTests {
    @Test(
        "A recording that is longer than many pieces comes whole, with its length and type, and HEAD has the length alone"
    )
    func whole() async throws {
        try await withServer { server in
            let bytes = try server.keep("call.wav", Self.wav(1_000_000))
            try server.record("r1", files: ["call.wav"])
            let answer = try await server.ask("GET /v1/history/r1/recording")
            #expect(answer.head.hasPrefix("HTTP/1.1 200"), "\(answer.head)")
            #expect(answer.has("Content-Length: 1000000") && answer.has("Content-Type: audio/wav"))
            #expect(answer.has("Accept-Ranges: bytes") && answer.has("Cache-Control: no-store"))
            #expect(answer.body == bytes)
            let head = try await server.ask("HEAD /v1/history/r1/recording", "Range: bytes=0-9")
            #expect(head.head.hasPrefix("HTTP/1.1 200") && head.has("Content-Length: 1000000") && head.body.isEmpty)
            try await until { try await server.receivers() == 0 }
        }
    }

    @Test("A range has its bytes; one behind the end is 416, and one of another version of the file is the whole file")
    func ranges() async throws {
        try await withServer { server in
            let bytes = try server.keep("call.opus", Self.ogg(200_000))
            try server.record("r1", files: ["call.opus"])
            func ask(_ fields: String...) async throws -> Server.Answer {
                try await server.ask("GET /v1/history/r1/recording?number=1", fields: fields)
            }
            for (field, range) in [
                ("0-0", 0..<1), ("100-65635", 100..<65_636), ("65535-65537", 65_535..<65_538),
                ("199999-", 199_999..<200_000),
                ("150000-9999999", 150_000..<200_000), ("-70000", 130_000..<200_000),
            ] {
                let answer = try await ask("Range: bytes=\(field)")
                #expect(answer.head.hasPrefix("HTTP/1.1 206") && answer.has("Content-Type: audio/ogg"), "\(field)")
                #expect(
                    answer.has("Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/200000"), "\(field)")
                #expect(answer.has("Content-Length: \(range.count)") && answer.body == Array(bytes[range]), "\(field)")
            }
            let behind = try await ask("Range: bytes=200000-")
            #expect(behind.head.hasPrefix("HTTP/1.1 416") && behind.has("Content-Range: bytes */200000"))
            #expect(
                behind.has("Content-Type: application/problem+json") && behind.text.contains("range_not_satisfiable"))
            let plain = try await ask()
            let tag = try #require(plain.head.firstMatch(of: #/ETag: ("[^\r]+")/#)).1
            #expect(try await ask("Range: bytes=5-9", "If-Range: \(tag)").body == Array(bytes[5..<10]))
            #expect(try await ask("Range: bytes=5-9", "If-Range: \"other\"").body == bytes)
        }
    }

    @Test("A recording that is gone, a number and a record that are not there are 404, each with its code")
    func gone() async throws {
        try await withServer { server in
            try server.keep("second.wav", Self.wav(100))
            try server.record("r1", files: ["first.wav", "second.wav"])
            try server.record("r2", files: [])
            for (target, code) in [
                ("r1/recording", "no_such_recording"), ("r1/recording?number=3", "no_such_recording"),
                ("r2/recording", "no_such_recording"), ("r3/recording", "no_such_call"),
            ] {
                let answer = try await server.ask("GET /v1/history/\(target)")
                #expect(answer.head.hasPrefix("HTTP/1.1 404"), "\(target)")
                #expect(
                    answer.has("Content-Type: application/problem+json") && answer.text.contains("\"\(code)\""),
                    "\(target)")
            }
            #expect(try await server.ask("GET /v1/history/r1/recording?number=2").body.count == 100)
        }
    }

    @Test(
        "Nothing but a sound file that was written during the call is read: no link, folder, pipe, other file or relative path"
    )
    func foreign() async throws {
        try await withServer { server in
            let file = Self.wav(5_000)
            try server.keep("elsewhere.wav", file)
            try server.keep("text.wav", Array("secret: a-token-that-is-not-sound, and more of it".utf8))
            try server.keep("short.wav", Array("RIFF".utf8))
            try server.keep("empty.wav", [])
            try server.keep("older.wav", file, at: Date(timeIntervalSinceNow: -3_600))
            try server.keep("newer.wav", file, at: Date(timeIntervalSinceNow: 3_600))
            let manager = FileManager.default
            try manager.createSymbolicLink(
                atPath: server.path("link.wav"), withDestinationPath: server.path("elsewhere.wav"))
            try manager.createDirectory(atPath: server.path("folder.wav"), withIntermediateDirectories: false)
            #expect(mkfifo(server.path("pipe.wav"), 0o600) == 0)
            let names = [
                "text.wav", "short.wav", "empty.wav", "older.wav", "newer.wav", "link.wav", "folder.wav", "pipe.wav",
            ]
            for (number, name) in names.enumerated() { try server.record("f\(number)", files: [name]) }
            for (number, path) in ["relative.wav", "/etc/passwd", "/dev/zero", ""].enumerated() {
                try server.record("p\(number)", paths: [path])
            }
            for name in names.indices.map({ "f\($0)" }) + (0..<4).map({ "p\($0)" }) {
                let answer = try await server.ask("GET /v1/history/\(name)/recording")
                #expect(answer.head.hasPrefix("HTTP/1.1 404") && answer.text.contains("no_such_recording"), "\(name)")
            }
        }
    }

    @Test("The 17th client is refused; clients that go, or do not read, leave nothing behind")
    func crowd() async throws {
        try await withServer { server in
            // More than a socket's buffers have room for.
            try server.keep("call.wav", Self.wav(8_000_000))
            try server.record("r1", files: ["call.wav"])
            var clients: [Client] = []
            // One after the other: requests that look up a record at once are limited, too.
            for _ in 0..<RecordingStreams.limit {
                let client = try server.connect("GET /v1/history/r1/recording")
                try await until { client.receivesMore() }
                clients.append(client)
            }
            #expect(try await server.receivers() == RecordingStreams.limit)
            let late = try await server.ask("GET /v1/history/r1/recording")
            #expect(late.head.hasPrefix("HTTP/1.1 429") && late.text.contains("too_many"), "\(late.head)")
            clients[3].close()
            try await until { try await server.receivers() == RecordingStreams.limit - 1 }
            #expect(try await server.ask("GET /v1/history/r1/recording", "Range: bytes=0-9").body.count == 10)
            for client in clients { client.close() }
            try await until { try await server.receivers() == 0 }
        }
    }

    @Test("If a file is cut while it is sent, the connection ends before the length that was promised")
    func cut() async throws {
        try await withServer { server in
            try server.keep("call.wav", Self.wav(8_000_000))
            try server.record("r1", files: ["call.wav"])
            let client = try server.connect("GET /v1/history/r1/recording")
            try await until { client.receivesMore() }
            #expect(truncate(server.path("call.wav"), 4_000_000) == 0)
            try await until { client.hasAll() }
            let answer = client.answer
            #expect(answer.has("Content-Length: 8000000") && answer.body.count < 8_000_000, "\(answer.body.count)")
            try await until { try await server.receivers() == 0 }
        }
    }

    // MARK: - Files, and a server with a device whose records name them

    private static func wav(_ count: Int) -> [UInt8] { sound("RIFF....WAVE", count) }

    private static func ogg(_ count: Int) -> [UInt8] {
        sound("OggS" + String(repeating: ".", count: 24) + "OpusHead", count)
    }

    private static func sound(_ head: String, _ count: Int) -> [UInt8] {
        let head = Array(head.utf8)
        return head + (head.count..<max(head.count, count)).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
    }

    private struct Absent: Error {}

    private func withServer(_ work: (Server) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("r-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let text = """
            accounts:
              - name: a
                account: {anonymous: a, server: "http://127.0.0.1:1"}
                device: {call_records: "\(folder)/calls.jsonl"}
            media: {realtime_priority: 0}
            """
        let configuration = try AccountsConfiguration.read(ConfigDocument.read(text: text, environment: { _ in nil }))
        let logger = Logger(label: "recordings") { _ in SwiftLogNoOpLogHandler() }
        let media = try SharedMedia(for: configuration.accounts.map(\.configuration), logger: logger)
        let accounts = AccountSet(configuration, media: media, logger: logger) { _ in throw Absent() }
        let server = try await Server(ControlRequestHandler(accounts, version: "1"), folder, logger)
        do { try await work(server) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
        await accounts.shutDown()
    }

    private final class Server: Sendable {
        /// An answer, and what has come of its body.
        struct Answer {
            let head: String
            let body: [UInt8]

            var text: String { String(decoding: body, as: UTF8.self) }

            func has(_ field: String) -> Bool { "\(head)\r\n".contains("\r\n\(field)\r\n") }
        }

        private let folder: String
        private let desk: NIOLoopBound<ControlDesk>
        private let service: NIOLoopBound<ControlHTTPService>
        private let loop: any EventLoop
        private let channel: any Channel
        private let socket: ControlSocket
        private let began = Int64(Date().timeIntervalSince1970 * 1_000) - 10_000

        init(_ handler: ControlRequestHandler, _ folder: String, _ logger: Logger) async throws {
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            let store = await EventStore.open(folder: nil, logger: logger)
            let (desk, service, listener) = try await loop.submit {
                let streams = EventStreams(store, on: loop, logger: logger) { await handler.levels() }
                let desk = ControlDesk(
                    handler, ControlEventHub(), ControlFront(store, streams, on: loop))
                let service = ControlHTTPService(desk, ControlAdmission(), logger: logger)
                let listener = HTTPListener(
                    service, tls: nil, budget: InboundBudget(limit: 1 << 20),
                    bounds: StrangerBounds(bodyBytes: 8_192, messageBytes: 1), messageBytes: 1)
                return (
                    NIOLoopBound(desk, eventLoop: loop), NIOLoopBound(service, eventLoop: loop),
                    NIOLoopBound(listener, eventLoop: loop)
                )
            }.get()
            socket = try ControlSocket(path: "\(folder)/s")
            channel = try await HTTPListener.listen(
                on: try #require(socket.takeDescriptor()), with: listener, on: loop)
            (self.desk, self.service, self.loop, self.folder) = (desk, service, loop, folder)
        }

        func path(_ name: String) -> String { "\(folder)/\(name)" }

        /// Writes a file, as if at a time.
        @discardableResult
        func keep(_ name: String, _ bytes: [UInt8], at time: Date? = nil) throws -> [UInt8] {
            try Data(bytes).write(to: URL(fileURLWithPath: path(name)))
            if let time {
                try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path(name))
            }
            return bytes
        }

        /// Adds the record of a call that has just ended.
        func record(_ name: String, files: [String]) throws { try record(name, paths: files.map(path)) }

        func record(_ name: String, paths: [String]) throws {
            let recordings = paths.map { #"{"began":\#(began),"file":"\#($0)"}"# }.joined(separator: ",")
            let line =
                #"{"call":"\#(name)","application":"a","over":true,"ended":\#(began + 10_000),"direction":"incoming","peer":"bob","#
                + #""reason":"completed","ended_by":"remote","duration_ms":9000,"recordings":[\#(recordings)]}"# + "\n"
            let file = path("calls.jsonl")
            let earlier = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
            try (earlier + line).write(toFile: file, atomically: true, encoding: .utf8)
        }

        /// Clients that receive recordings now.
        func receivers() async throws -> Int { try await loop.submit { [desk] in desk.value.recordingClients }.get() }

        func connect(_ request: String, fields: [String] = []) throws -> Client {
            let client = try Client(path("s"))
            let lines = ["\(request) HTTP/1.1", "Host: device", "Connection: close"] + fields
            try client.send(lines.map { "\($0)\r\n" }.joined() + "\r\n")
            return client
        }

        func ask(_ request: String, _ fields: String...) async throws -> Answer {
            try await ask(request, fields: fields)
        }

        func ask(_ request: String, fields: [String]) async throws -> Answer {
            let client = try connect(request, fields: fields)
            try await until { client.hasAll() }
            return client.answer
        }

        func stop() async {
            try? await channel.close()
            try? await loop.submit { [desk, service] in
                desk.value.close()
                service.value.close()
            }.get()
        }
    }

    private final class Client {
        private struct Failed: Error {}

        private let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        private var bytes: [UInt8] = []
        private var isOpen = true
        private var isAtEnd = false

        init(_ path: String) throws {
            guard let address = UnixAddress(path), address.connect(descriptor) else { throw Failed() }
        }

        deinit { close() }

        func send(_ text: String) throws {
            let bytes = Array(text.utf8)
            guard Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
                throw Failed()
            }
        }

        /// Whether something has come that was not read, which stays.
        func receivesMore() -> Bool {
            var byte: UInt8 = 0
            return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT) | Int32(MSG_PEEK)) == 1
        }

        /// Reads what has come; whether the server has closed the connection.
        func hasAll() -> Bool {
            var part = [UInt8](repeating: 0, count: 65_536)
            while !isAtEnd {
                let count = recv(descriptor, &part, part.count, Int32(MSG_DONTWAIT))
                if count < 0, errno == EAGAIN { return false }
                if count <= 0 { isAtEnd = true } else { bytes += part[..<count] }
            }
            return true
        }

        var answer: Server.Answer {
            let end = Array("\r\n\r\n".utf8)
            let head = bytes.indices.first { bytes[$0...].starts(with: end) } ?? bytes.endIndex
            return Server.Answer(
                head: String(decoding: bytes[..<head], as: UTF8.self), body: Array(bytes[head...].dropFirst(4)))
        }

        /// Closes the connection, with what was sent and not read.
        func close() {
            if isOpen { Glibc.close(descriptor) }
            isOpen = false
        }
    }
}
