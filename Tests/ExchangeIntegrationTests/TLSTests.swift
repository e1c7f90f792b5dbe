import ExchangeServer
import Foundation
import SignalWire
import TLS
import Testing

@Suite(.timeLimit(.minutes(5))) struct TLSTests {
    /// What `openssl s_client` makes of the exchange: protocol and cipher, or `nil` if there was no handshake.
    private func handshake(_ arguments: [String], port: Int) async throws -> String? {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        // Level 0: this client would agree to anything.
        process.arguments =
            ["openssl", "s_client", "-connect", "127.0.0.1:\(port)", "-brief", "-cipher", "ALL:@SECLEVEL=0"] + arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = try await Task.detached { try output.fileHandleForReading.readToEnd() }.value ?? Data()
        process.waitUntilExit()
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        guard lines.contains("CONNECTION ESTABLISHED") else { return nil }
        return lines.filter { $0.hasPrefix("Protocol version") || $0.hasPrefix("Ciphersuite") }
            .map { String($0.split(separator: " ").last ?? "") }.joined(separator: " ")
    }

    @Test("Only TLS 1.2 and 1.3 with forward secrecy and authenticated encryption are spoken")
    func ciphers() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for key in [["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["rsa:2048"]] {
            var configuration = ServerFixture.configuration()
            configuration.certificate = try TestCertificate.make(in: folder, key: key)
            try await ServerFixture.withServer(configuration) { server in
                let best = try await handshake([], port: server.port)
                #expect(best?.hasPrefix("TLSv1.3 TLS_") == true, "\(best ?? "nothing")")
                let signature = key[0] == "ec" ? "ECDSA" : "RSA"
                for cipher in ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"] {
                    let name = "ECDHE-\(signature)-\(cipher)"
                    let agreed = try await handshake(["-tls1_2", "-cipher", name], port: server.port)
                    #expect(agreed == "TLSv1.2 \(name)")
                }
                for version in ["-tls1", "-tls1_1"] {
                    #expect(try await handshake([version], port: server.port) == nil, "\(version)")
                }
                // Without forward secrecy, with CBC, or with no encryption to speak of.
                for weak in [
                    "kRSA", "AES128-SHA", "ECDHE-\(signature)-AES128-SHA", "ECDHE-\(signature)-AES256-SHA384",
                    "DHE", "3DES", "aNULL:eNULL",
                ] {
                    let arguments = ["-tls1_2", "-cipher", "\(weak):@SECLEVEL=0"]
                    #expect(try await handshake(arguments, port: server.port) == nil, "\(weak)")
                }
            }
        }
    }

    @Test("A TLS client that does not read does not delay the end of the exchange")
    func silentClient() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var configuration = ServerFixture.configuration()
        configuration.certificate = try TestCertificate.make(in: folder)
        let client = Process()
        let (input, output) = (Pipe(), Pipe())
        try await ServerFixture.withServer(configuration) { server in
            client.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            client.arguments = [
                "python3", "-c",
                """
                import socket, ssl, sys
                context = ssl._create_unverified_context()
                connection = context.wrap_socket(socket.create_connection(("127.0.0.1", \(server.port))))
                print("open", flush=True)
                sys.stdin.read()
                """,
            ]
            (client.standardInput, client.standardOutput) = (input, output)
            try client.run()
            let line = try await Task.detached { try output.fileHandleForReading.read(upToCount: 5) }.value
            #expect(line == Data("open\n".utf8))
            let before = ContinuousClock.now
            await server.stop()
            // A close in order waits five seconds for the other end.
            #expect(ContinuousClock.now - before < .seconds(4))
        }
        try input.fileHandleForWriting.close()
        client.waitUntilExit()
    }

    @Test("Over TLS browsers are bound to TLS for later visits")
    func strictTransport() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var configuration = ServerFixture.configuration()
        configuration.showsWebPhone = true
        let certificate = try TestCertificate.make(in: folder)
        configuration.certificate = certificate
        try await ServerFixture.withServer(configuration) { server in
            let client = try await RawClient.connect(
                port: server.port, tls: .client(trusting: .file(certificate.chainPath)))
            for path in ["/", "/v1/connection"] {
                #expect(await client.request("GET", path).headers["strict-transport-security"] == "max-age=31536000")
            }
            client.close()
        }
    }
}

/// Certificates for tests.
enum TestCertificate {
    /// A certificate for `localhost` that signs itself, and its key, in a folder that is made for them.
    static func make(
        in folder: String, key: [String] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    ) throws -> ExchangeConfiguration.Certificate {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let certificate = ExchangeConfiguration.Certificate(
            chainPath: "\(folder)/certificate.pem", keyPath: "\(folder)/key.pem")
        let openssl = Process()
        openssl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        openssl.arguments =
            ["openssl", "req", "-x509", "-newkey"] + key + [
                "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                certificate.keyPath, "-out", certificate.chainPath,
            ]
        openssl.standardError = FileHandle.nullDevice
        try openssl.run()
        openssl.waitUntilExit()
        try #require(openssl.terminationStatus == 0)
        return certificate
    }
}
