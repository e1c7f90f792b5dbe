@testable import ExchangeServer
import Foundation
import Glibc
import SignalWire
import Testing
import Core
import Realtime

/// What clients are given for TURN servers.
@Suite(.timeLimit(.minutes(5))) struct RelayCredentialTests {
    private static let secret = "north-of-everything"

    private static func configuration(port: Int = 3_478) -> ExchangeConfiguration {
        var configuration = ServerFixture.configuration()
        configuration.iceServers = [
            ICEServerConfiguration(
                urls: ["turn:127.0.0.1:\(port)"], access: .own(RelaySecret(Redacted(secret), lifetime: .seconds(600)))),
            ICEServerConfiguration(
                urls: ["turn:127.0.0.1:9"], access: .fixed(username: "all", credential: Redacted("fixed-credential"))),
        ]
        return configuration
    }

    private func resources(_ token: String, _ port: Int) async throws -> ConnectionResources {
        let client = try await RawClient.connect(port: port)
        defer { client.close() }
        let response = await client.request("GET", "/v1/connection", ["Authorization": "Bearer \(token)"])
        return try SignalCoding.decode(ConnectionResources.self, from: Array(response.body.utf8))
    }

    @Test("A guest gets credentials of its own, which end, and no others; a user gets its own under its name")
    func guests() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            let login = await client.request(
                "POST", "/v1.1/login/anonymous",
                ["Authorization": ServerFixture.basic, "Content-Type": "application/json"],
                body: #"{"user_id":"mallory"}"#)
            client.close()
            let token = try SignalCoding.decode(AnonymousLoginResponse.self, from: Array(login.body.utf8)).token
            let given = try await resources(token.secret, server.port)
            #expect(given.iceServers.count == 1 && given.iceServersSeconds == 600)
            let name = try #require(given.iceServers.first?.username)
            let expiry = try #require(name.split(separator: ":").first.flatMap { Int64($0) })
            #expect(name.contains(":guest-") && !name.contains("mallory"))
            let left = expiry - MonotonicClock.wallTime.unixMilliseconds / 1_000
            #expect((590...600).contains(left))

            let own = try await resources(try await ServerFixture.token(of: "alice", port: server.port), server.port)
            #expect(own.iceServers.count == 2 && own.iceServers[0].username?.hasSuffix(":alice") == true)
            #expect(own.iceServers[1].credential?.secret == "fixed-credential")
        }
    }

    @Test(
        "A real TURN server (coturn) takes what clients are given, until it ends, and nothing made up",
        .enabled(if: Relay.isInstalled))
    func coturn() async throws {
        let relay = try Relay(secret: Self.secret)
        try await ServerFixture.withServer(Self.configuration(port: relay.port)) { server in
            let given = try await resources(try await ServerFixture.token(of: "alice", port: server.port), server.port)
            let (name, password) = (
                try #require(given.iceServers[0].username), try #require(given.iceServers[0].credential)
            )
            #expect(try await relay.takes(name, password.secret))
            #expect(try await !relay.takes("9" + name, password.secret), "a later end")
            #expect(try await !relay.takes(name, "made-up"))
            let secret = RelaySecret(Redacted(Self.secret), lifetime: .seconds(600))
            let old = WallClock(unixMilliseconds: MonotonicClock.wallTime.unixMilliseconds - 660_000)
            let ended = secret.credentials(for: "alice", at: old)
            #expect(try await !relay.takes(ended.username, ended.password.secret))
        }
    }
}

/// coturn on the loopback, with a secret that it shares with an exchange, and its own client.
private final class Relay {
    private static let (program, client) = ("/usr/bin/turnserver", "/usr/bin/turnutils_uclient")
    static var isInstalled: Bool { [program, client].allSatisfy(FileManager.default.isExecutableFile(atPath:)) }

    let port: Int
    private let folder: URL
    private let process = Process()

    init(secret: String) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "handset-turn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        port = try Self.freePort()
        process.executableURL = URL(filePath: Self.program)
        process.currentDirectoryURL = folder
        process.arguments = [
            "-n", "--log-file=\(folder.appending(path: "log").path)", "--simple-log",
            "--pidfile=\(folder.appending(path: "pid").path)", "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1",
            "--listening-port=\(port)", "--realm=handset.test", "--use-auth-secret", "--static-auth-secret=\(secret)",
            "--allow-loopback-peers", "--no-cli", "--no-tls", "--no-dtls", "--relay-threads=1",
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        if process.isRunning {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
        try? FileManager.default.removeItem(at: folder)
    }

    /// Whether a client gets an address there, and something through it.
    func takes(_ username: String, _ password: String) async throws -> Bool {
        try await awaitServer()
        let client = Process()
        client.executableURL = URL(filePath: Self.client)
        client.arguments = [
            "-y", "-n", "1", "-m", "1", "-l", "50", "-u", username, "-w", password, "-p", "\(port)", "127.0.0.1",
        ]
        client.standardOutput = FileHandle.nullDevice
        client.standardError = FileHandle.nullDevice
        // Without holding up a thread that other tests need.
        return try await withCheckedThrowingContinuation { continuation in
            client.terminationHandler = { continuation.resume(returning: $0.terminationStatus == 0) }
            do { try client.run() } catch { continuation.resume(throwing: error) }
        }
    }

    /// Waits until it takes TCP connections, which it does when it is up.
    private func awaitServer() async throws {
        for _ in 0..<500 {
            try #require(process.isRunning, "the TURN server has ended by itself")
            if try Self.withSocket({ connect($0, $1, $2) }, port: port).isGood { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        Issue.record("the TURN server does not listen")
    }

    private static func freePort() throws -> Int { try withSocket({ bind($0, $1, $2) }, port: 0).port }

    private static func withSocket(
        _ use: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, port: Int
    ) throws -> (isGood: Bool, port: Int) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                let status = use(descriptor, $0, length)
                getsockname(descriptor, $0, &length)
                return status
            }
        }
        return (status == 0, Int(UInt16(bigEndian: address.sin_port)))
    }
}
