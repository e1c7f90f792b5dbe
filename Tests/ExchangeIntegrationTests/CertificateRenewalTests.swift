import Enrollment
import ExchangeCore
import Foundation
import SignalWire
import TLS
import Testing

@testable import ExchangeServer

/// Certificates that change while the exchange runs.
@Suite(.timeLimit(.minutes(5))) struct CertificateRenewalTests {
    private func folder() -> String {
        FileManager.default.temporaryDirectory.appendingPathComponent("renewal-\(UUID())").path
    }

    private func client(_ port: Int, trusting roots: String) async throws -> RawClient {
        try await RawClient.connect(port: port, tls: .client(trusting: .file(roots)))
    }

    /// Whether a new connection, which trusts only these roots, is answered.
    private func isAnswered(_ port: Int, trusting roots: String) async throws -> Bool {
        let client = try await client(port, trusting: roots)
        defer { client.close() }
        return await client.request("GET", "/v1/connection").status == 401
    }

    private func wait(for condition: () async throws -> Bool) async throws {
        while try await !condition() { try await Task.sleep(for: .milliseconds(50)) }
    }

    @Test(
        "New certificate files are taken by themselves, and connections stay; a broken file is refused by name, and the old certificate stays"
    )
    func files() async throws {
        let (folder, other) = (folder(), folder())
        defer { for path in [folder, other] { try? FileManager.default.removeItem(atPath: path) } }
        var configuration = ServerFixture.configuration()
        let certificate = try TestCertificate.make(in: folder)
        configuration.certificate = certificate
        let next = try TestCertificate.make(in: other)
        let log = LogCapture()
        try await ServerFixture.withServer(configuration, log: log) { server in
            try FileManager.default.copyItem(atPath: certificate.chainPath, toPath: "\(folder)/first.pem")
            let standing = try await client(server.port, trusting: "\(folder)/first.pem")
            #expect(await standing.request("GET", "/v1/connection").status == 401)

            try "no certificate".write(toFile: certificate.chainPath, atomically: true, encoding: .utf8)
            try await wait { log.text.contains("The new certificate cannot be used") }
            #expect(log.text.contains(certificate.chainPath))
            #expect(try await isAnswered(server.port, trusting: "\(folder)/first.pem"))

            for (from, to) in [(next.keyPath, certificate.keyPath), (next.chainPath, certificate.chainPath)] {
                try Data(contentsOf: URL(filePath: from)).write(to: URL(filePath: to), options: .atomic)
            }
            try await wait { try await isAnswered(server.port, trusting: next.chainPath) }
            #expect(try await !isAnswered(server.port, trusting: "\(folder)/first.pem"))
            #expect(await standing.request("GET", "/v1/connection").status == 401, "the connection stands")
            standing.close()
        }
    }

    @Test(
        "An exchange that is its own authority makes a root once, and serves it with a page; its key is its owner's alone"
    )
    func ownAuthority() async throws {
        let folder = folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var configuration = ServerFixture.configuration()
        configuration.ownAuthority = OwnAuthority(folder: folder, names: ["localhost", "127.0.0.1"])
        var roots: [Data] = []
        for _ in 0..<2 {
            try await ServerFixture.withServer(configuration) { server in
                let client = try await client(server.port, trusting: "\(folder)/root.pem")
                let page = await client.request("GET", "/authority")
                #expect(page.status == 200 && page.headers["content-type"]?.hasPrefix("text/html") == true)
                let fingerprint = try #require(try configuration.authorityFingerprint())
                #expect(page.body.contains(fingerprint.text) && server.browserAdvice.contains(fingerprint.text))
                let root = await client.request("GET", "/authority/root.pem")
                #expect(Data(root.body.utf8) == FileManager.default.contents(atPath: "\(folder)/root.pem"))
                roots.append(Data(root.body.utf8))
                client.close()
            }
        }
        #expect(roots[0] == roots[1] && !roots[0].isEmpty)
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/authority.pem")
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        // After a crash between the two files.
        try FileManager.default.removeItem(atPath: "\(folder)/root.pem")
        try await ServerFixture.withServer(configuration) { server in
            #expect(FileManager.default.contents(atPath: "\(folder)/root.pem") == roots[0])
        }
        // However the owner's file is put together, its key stays there.
        let secret = try String(contentsOfFile: "\(folder)/authority.pem", encoding: .utf8)
        let key = try #require(secret.components(separatedBy: "-----BEGIN CERTIFICATE").first)
        let root = String(decoding: roots[0], as: UTF8.self)
        for text in [secret.replacingOccurrences(of: "\n", with: "\r\n"), root + key] {
            try text.write(toFile: "\(folder)/authority.pem", atomically: false, encoding: .utf8)
            try FileManager.default.removeItem(atPath: "\(folder)/root.pem")
            try await ServerFixture.withServer(configuration) { server in
                #expect(FileManager.default.contents(atPath: "\(folder)/root.pem") == roots[0])
            }
        }
        try "broken".write(toFile: "\(folder)/authority.pem", atomically: true, encoding: .utf8)
        await #expect(throws: ExchangeError.self) { try await ServerFixture.withServer(configuration) { _ in } }
    }

    @Test("A new certificate that ends within two weeks is warned of at once, and once a day from then on")
    func ending() async throws {
        var alarm = CertificateAlarm()
        let (day, end) = (86_400, 100 * 86_400)
        var warned: [Int] = []
        for hour in 0..<(24 * 110) where alarm.warning(end: end, now: hour * 3_600) != nil { warned.append(hour) }
        #expect(warned == stride(from: 24 * 86, to: 24 * 110, by: 24).map(\.self))
        // The clock is set back.
        #expect(alarm.warning(end: end, now: 90 * day) != nil)

        let folder = folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var configuration = ServerFixture.configuration()
        configuration.certificate = try TestCertificate.make(in: folder)
        let log = LogCapture()
        try await ServerFixture.withServer(configuration, log: log) { server in
            #expect(try await server.adopt(configuration))
            try await wait { log.text.contains("The certificate expires soon") }
            #expect(log.text.contains("ends in a day"))
        }
    }

    @Test("A reload takes users, limits and certificate, and ends no session; one that cannot be used changes nothing")
    func reload() async throws {
        let (folder, other) = (folder(), folder())
        defer { for path in [folder, other] { try? FileManager.default.removeItem(atPath: path) } }
        var configuration = ServerFixture.configuration()
        try await ServerFixture.withServer(configuration) { server in
            let device = try await ServerFixture.device("phone", of: "bob", port: server.port)
            configuration.users.append(configuration.users[0])
            configuration.users[2].id = "dora"
            configuration.users[2].publicIDs = []
            configuration.users[2].mediaTokens = [.init(of: "media-token-of-dora")]
            configuration.presenceOff()
            #expect(try await server.adopt(configuration), "without TLS before and after there is nothing to refuse")
            _ = try await ServerFixture.token(of: "dora", port: server.port)
            _ = try await device.call(Ping())
            configuration.certificate = try TestCertificate.make(in: folder)
            #expect(try await !server.adopt(configuration), "TLS begins at the next start")
            device.raw.close()
        }
        configuration.certificate = try TestCertificate.make(in: folder)
        try await ServerFixture.withServer(configuration) { server in
            var broken = configuration
            broken.certificate?.keyPath = "\(folder)/none.pem"
            broken.users = []
            await #expect(throws: ExchangeError.self) { try await server.adopt(broken) }
            configuration.certificate = try TestCertificate.make(in: other)
            #expect(try await server.adopt(configuration))
            #expect(try await isAnswered(server.port, trusting: "\(other)/certificate.pem"))
        }
    }
}

extension ExchangeConfiguration {
    /// Something that waits for the next start.
    fileprivate mutating func presenceOff() { core.tellsPresence = false }
}
