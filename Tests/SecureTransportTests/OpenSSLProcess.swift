import Foundation
import Glibc
import SecureTransport
import Testing
import Core

/// The `openssl` tool as the other side of a handshake.
final class OpenSSLProcess {
    /// A certificate made by the tool.
    struct Certificate {
        let folder: URL
        let fingerprint: DTLSFingerprint

        /// - Parameter key: What `openssl req -newkey` is to make.
        init(key: [String]) throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent("dtls-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let files = (folder.appendingPathComponent("c").path, folder.appendingPathComponent("k").path)
            _ = try Self.run(
                ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=peer", "-out", files.0, "-keyout", files.1]
                    + ["-newkey"] + key)
            let printed = try Self.run(["x509", "-in", files.0, "-noout", "-fingerprint", "-sha256"])
            let hash = try #require(printed.split(separator: "=").last)
            fingerprint = try DTLSFingerprint(
                parsing: "sha-256 " + hash.trimmingCharacters(in: .whitespacesAndNewlines))
        }

        func remove() { try? FileManager.default.removeItem(at: folder) }

        private static func run(_ arguments: [String]) throws -> String {
            let (process, pipe) = (Process(), Pipe())
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = ["timeout", "20", "openssl"] + arguments
            process.standardOutput = pipe
            process.standardError = FileHandle.nullDevice
            try process.run()
            let output = pipe.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            try #require(process.terminationStatus == 0)
            return String(decoding: output, as: UTF8.self)
        }
    }

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    init(_ arguments: [String]) throws {
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["timeout", "20", "openssl"] + arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    /// The arguments that have it use `certificate`.
    static func using(_ certificate: Certificate) -> [String] {
        let (chain, key) = (
            certificate.folder.appendingPathComponent("c"), certificate.folder.appendingPathComponent("k")
        )
        return ["-cert", chain.path, "-key", key.path]
    }

    /// The arguments that have it offer `suite` and print the keys.
    static func offering(_ suite: SRTPSuite) -> [String] {
        let profile = suite == .aeadAES128GCM ? "SRTP_AEAD_AES_128_GCM" : "SRTP_AES128_CM_SHA1_80"
        let size = 2 * (suite.keyBytes + suite.saltBytes)
        return ["-use_srtp", profile, "-keymatexport", "EXTRACTOR-dtls_srtp", "-keymatexportlen", "\(size)"]
    }

    /// Has it say goodbye and end.
    func quit() { try? input.fileHandleForWriting.write(contentsOf: Data("Q\n".utf8)) }

    /// Waits for its end, which must not be by force; returns all that it printed.
    func finish() throws -> String {
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return String(decoding: printed, as: UTF8.self)
    }
}

/// A UDP socket on 127.0.0.1 that talks to one peer: the one given, or whoever sends first.
final class LoopbackSocket {
    let port: UInt16
    var peer: UInt16?
    /// All that came, in order.
    private(set) var received: [[UInt8]] = []
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        self.descriptor = descriptor
        var address = Self.address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        try #require(isBound)
    }

    deinit { Glibc.close(descriptor) }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    func send(_ datagram: [UInt8]) {
        guard let peer else { return }
        var address = Self.address(peer)
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = sendto(
                    descriptor, datagram, datagram.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// One datagram, or nil if none came in time.
    func receive(within time: Duration) -> [UInt8]? {
        let milliseconds = Int32(clamping: Int(time.milliseconds) + 1)
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&poller, 1, max(0, milliseconds)) == 1 else { return nil }
        var buffer = [UInt8](repeating: 0, count: 2048)
        var address = Self.address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(descriptor, &buffer, buffer.count, 0, $0, &size)
            }
        }
        guard count > 0 else { return nil }
        if peer == nil { peer = UInt16(bigEndian: address.sin_port) }
        received.append(Array(buffer.prefix(count)))
        return received.last
    }
}
