import Foundation
import SIPClient
import Testing

/// Files of certificates that sign themselves, in a folder that goes with it.
final class CertificateFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("certificates-\(UUID())").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// - Parameter names: The subject's alternative names, as OpenSSL writes them.
    func make(
        _ name: String, names: String = "IP:127.0.0.1"
    ) throws -> SIPServiceConfiguration.ClientCertificate {
        let files = SIPServiceConfiguration.ClientCertificate(
            chainFile: "\(path)/\(name).pem", keyFile: "\(path)/\(name).key")
        let openssl = Process()
        openssl.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        openssl.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
            "-subj", "/CN=\(name)", "-addext", "subjectAltName=\(names)", "-keyout", files.keyFile, "-out",
            files.chainFile,
        ]
        openssl.standardError = FileHandle.nullDevice
        try openssl.run()
        openssl.waitUntilExit()
        try #require(openssl.terminationStatus == 0)
        return files
    }
}
