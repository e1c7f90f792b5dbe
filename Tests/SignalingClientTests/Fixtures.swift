import CallControl
import Foundation
import HTTPTransport
import Logging
import NIOCore
import NIOPosix
import TLS
import Testing

@testable import SignalingClient

enum Fixtures {
    static let group = MultiThreadedEventLoopGroup.singleton

    static func configuration(
        _ address: String, credentials: HandsetServiceConfiguration.Credentials = .mediaToken("media-secret")
    ) -> HandsetServiceConfiguration {
        HandsetServiceConfiguration(
            addresses: .init(address),
            application: .init(name: "Handset", version: "1.2.3", system: "Linux", key: "app", secret: "app-secret"),
            credentials: credentials, device: .init(id: "d1", name: "Desk"))
    }

    static func rest(_ configuration: HandsetServiceConfiguration) throws -> RESTClient {
        RESTClient(
            configuration: configuration, trust: try TLSTrust.of(configuration.trustRootFile),
            loop: group.next())
    }

    static func service(
        port: Int, scheme: String = "http",
        _ change: (inout HandsetServiceConfiguration) -> Void = { _ in }
    ) throws -> HandsetService {
        var configuration = configuration("\(scheme)://localhost:\(port)")
        change(&configuration)
        return try HandsetService(configuration, group: group, logger: quiet)
    }

    /// Says nothing.
    static var quiet: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }

    /// A certificate for `localhost` that signed itself: where it lies, and a server's context with it.
    static func selfSigned() throws -> (certificate: String, context: TLSContext) {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("handset-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let (key, certificate) = (folder.path + "/key.pem", folder.path + "/certificate.pem")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return (certificate, try TLSContext.server(CertificateFiles(chainPath: certificate, keyPath: key).read()))
    }
}

/// What `work` throws.
func failure<Value>(of work: () async throws -> Value) async throws -> any Error {
    do {
        _ = try await work()
    } catch {
        return error
    }
    Issue.record("nothing was thrown")
    throw CancellationError()
}
