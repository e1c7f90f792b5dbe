internal import Realtime
internal import Foundation
import Glibc
public import ICE
internal import Core

/// A TURN server (coturn) on the loopback, with a certificate for "localhost" that it is told to have.
public final class RelayServer {
    /// Where Debian's package puts it.
    public static let program = "/usr/bin/turnserver"
    /// Whether it is there.
    public static var isInstalled: Bool { access(program, X_OK) == 0 }

    /// What clients log in with.
    public static let (username, password) = ("user", "secret")

    /// The port of UDP and TCP, and the one of TLS.
    public let (port, securePort): (UInt16, UInt16)
    /// What clients have to trust.
    public let certificate: String
    private let folder: URL
    private let process: Process

    /// Starts it, and returns when it answers on both of its ports.
    ///
    /// - Parameter hasIPv6: It gives relayed addresses of both families.
    public init(name: String = "localhost", hasIPv6: Bool = false) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "handset-turn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        certificate = folder.appending(path: "certificate.pem").path
        let key = folder.appending(path: "key.pem").path
        try Self.run(
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=\(name)", "-addext",
            "subjectAltName=DNS:\(name)")
        var arguments = [
            "-n", "--log-file=\(folder.appending(path: "log").path)", "--simple-log",
            "--pidfile=\(folder.appending(path: "pid").path)", "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1",
            "--realm=handset.test", "--lt-cred-mech", "--user=\(Self.username):\(Self.password)",
            "--allow-loopback-peers", "--no-cli", "--no-dtls", "--cert=\(certificate)", "--pkey=\(key)",
            "--relay-threads=1",
        ]
        if hasIPv6 { arguments.append("--relay-ip=::1") }
        (process, port, securePort) = try Self.start(arguments, in: folder)
    }

    /// Starts it on free ports; on others if somebody else was quicker to take one of them.
    private static func start(
        _ arguments: [String], in folder: URL
    ) throws -> (process: Process, port: UInt16, securePort: UInt16) {
        var attempt = 0
        while true {
            attempt += 1
            let (port, securePort) = (try freePort(), try freePort())
            let process = Process()
            process.executableURL = URL(filePath: program)
            process.currentDirectoryURL = folder
            process.arguments = arguments + ["--listening-port=\(port)", "--tls-listening-port=\(securePort)"]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            do {
                try awaitAnswer(of: process, on: port)
                try awaitAnswer(of: process, on: securePort)
                return (process, port, securePort)
            } catch {
                end(process)
                if attempt == 3 { throw error }
            }
        }
    }

    /// Why there is no server.
    public struct Failure: Error, CustomStringConvertible {
        /// What was not to be had.
        public let description: String
        fileprivate init(_ description: String) { self.description = description }
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Ends it as a crash would.
    public func kill() { Self.end(process) }

    private static func end(_ process: Process) {
        guard process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// How a client names this server.
    public func server(over transport: ICEServer.Transport, password: String = RelayServer.password) throws -> ICEServer
    {
        let isSecure = if case .tls = transport { true } else { false }
        let address = try Self.loopback(port: isSecure ? securePort : port)
        return ICEServer(.turn(transport, username: Self.username, password: password), at: address)
    }

    /// A port on the loopback that nobody had a moment ago, for UDP or TCP.
    private static func freePort() throws -> UInt16 {
        try UDPSocket(boundTo: loopback(port: 0)).localAddress.port
    }

    private static func loopback(port: UInt16) throws -> SocketAddress {
        guard let address = SocketAddress(host: "127.0.0.1", port: port) else { throw Failure("no loopback") }
        return address
    }

    private static func run(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(filePath: arguments[0])
        process.arguments = Array(arguments.dropFirst())
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(arguments.joined(separator: " ")) }
    }

    private static func awaitAnswer(of process: Process, on port: UInt16) throws {
        let address = try loopback(port: port)
        for _ in 0..<1_000 {
            guard process.isRunning else { throw Failure("the TURN server has ended by itself") }
            let stream = try StreamSocket(connectingTo: address)
            var descriptor = pollfd(fd: stream.descriptor, events: Int16(POLLOUT), revents: 0)
            poll(&descriptor, 1, 1_000)
            let isConnected = stream.connectionError(with: address) == nil
            if isConnected { return }
            usleep(10_000)
        }
        throw Failure("the TURN server does not answer on port \(port)")
    }
}
