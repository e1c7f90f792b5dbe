import Datagrams
import Foundation
import Glibc
import ICE
import Testing

/// A TURN server (coturn) on the loopback, with a certificate for "localhost" that it is told to have.
final class RelayServer {
    /// Where Debian's package puts it.
    static let program = "/usr/bin/turnserver"
    static var isInstalled: Bool { access(program, X_OK) == 0 }

    static let (username, password) = ("user", "secret")

    let (port, securePort): (UInt16, UInt16)
    /// What clients have to trust.
    let certificate: String
    private let folder: URL
    private let process = Process()

    /// Starts it, and returns when it answers on both of its ports.
    ///
    /// - Parameter hasIPv6: It gives relayed addresses of both families.
    init(name: String = "localhost", hasIPv6: Bool = false) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "handset-turn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        certificate = folder.appending(path: "certificate.pem").path
        let key = folder.appending(path: "key.pem").path
        try Self.run(
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=\(name)", "-addext",
            "subjectAltName=DNS:\(name)")
        (port, securePort) = (try Self.freePort(), try Self.freePort())
        process.executableURL = URL(filePath: Self.program)
        process.currentDirectoryURL = folder
        process.arguments = [
            "-n", "--log-file=\(folder.appending(path: "log").path)", "--simple-log",
            "--pidfile=\(folder.appending(path: "pid").path)", "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1",
            "--listening-port=\(port)", "--tls-listening-port=\(securePort)", "--realm=handset.test", "--lt-cred-mech",
            "--user=\(Self.username):\(Self.password)", "--allow-loopback-peers", "--no-cli", "--no-dtls",
            "--cert=\(certificate)", "--pkey=\(key)", "--relay-threads=1",
        ]
        if hasIPv6 { process.arguments?.append("--relay-ip=::1") }
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        try awaitAnswer(on: port)
        try awaitAnswer(on: securePort)
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Ends it as a crash would.
    func kill() {
        guard process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// How a client names this server.
    func server(over transport: ICEServer.Transport, password: String = RelayServer.password) throws -> ICEServer {
        let isSecure = if case .tls = transport { true } else { false }
        let address = try #require(SocketAddress(host: "127.0.0.1", port: isSecure ? securePort : port))
        return ICEServer(.turn(transport, username: Self.username, password: password), at: address)
    }

    /// A port on the loopback that nobody had a moment ago, for UDP or TCP.
    private static func freePort() throws -> UInt16 {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        return try UDPSocket(boundTo: loopback).localAddress.port
    }

    private static func run(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(filePath: arguments[0])
        process.arguments = Array(arguments.dropFirst())
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    private func awaitAnswer(on port: UInt16) throws {
        let address = try #require(SocketAddress(host: "127.0.0.1", port: port))
        for _ in 0..<500 {
            try #require(process.isRunning, "the TURN server has ended by itself")
            let stream = try StreamSocket(connectingTo: address)
            var descriptor = pollfd(fd: stream.descriptor, events: Int16(POLLOUT), revents: 0)
            poll(&descriptor, 1, 1_000)
            let isConnected = stream.connectionError(with: address) == nil
            if isConnected { return }
            usleep(10_000)
        }
        throw EventMismatch()
    }
}
