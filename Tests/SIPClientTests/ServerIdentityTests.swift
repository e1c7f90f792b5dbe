import CallControl
import Foundation
import HTTPTransport
import Logging
import SIP
@testable import SIPClient
import SIPSignaling
import SignalingClient
import TLS
import Testing

@Suite("The identity of a SIP server", .timeLimit(.minutes(1)))
struct ServerIdentityTests {
    @Test(
        "A certificate's SIP URIs are its domains, and then other names do not count (RFC 5922 §7.1)",
        arguments: [
            ([], true, false), (["sip:sip.test"], true, true), (["sip:SIP.Test"], true, true),
            (["sip:other.test"], false, false),
            (["sip:other.test", "sip:sip.test"], true, true),
            // Neither a user, nor another scheme, nor what is no URI is a domain.
            (["sip:bob@sip.test"], true, false), (["sips:sip.test"], true, false), (["https://sip.test"], true, false),
            (["sip:*.test"], true, false), (["sip:sip.test\0.evil"], true, false), (["sip:"], true, false),
        ])
    func domains(_ uris: [String], _ passesForHost: Bool, _ passesForDomain: Bool) throws {
        #expect(ServerIdentity(uris: uris, isForHost: true, server: "sip.test").isServer == passesForHost)
        #expect(ServerIdentity(uris: uris, isForHost: false, server: "sip.test").isServer == passesForDomain)
    }

    private func service(_ server: ScriptedServer, trusting root: String) throws -> SIPService {
        let uri = try #require(AnyURI("sip:alice@sip.test"))
        var account = SIPAccountSettings(address: NameAddress(uri), username: "alice", password: "secret")
        account.givesUpAtOnce = true
        var configuration = SIPServiceConfiguration(
            account: account, server: .init(host: "localhost", port: server.port, transport: .tls))
        configuration.trustRootFile = root
        return try SIPService(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test(
        "A server is believed by its domain or host name, and not by another one, a user's URI or a stranger's signature"
    )
    func connections() async throws {
        let files = try CertificateFolder()
        let stranger = try files.make("stranger")
        for (number, (names, isBelieved)) in [
            ("URI:sip:localhost", true), ("DNS:localhost", true), ("URI:sip:localhost,DNS:other.test", true),
            ("URI:sip:other.test", false), ("URI:sip:other.test,DNS:localhost", false),
            ("URI:sip:bob@localhost", false), ("DNS:other.test", false),
            // The address that the name leads to is not the name.
            ("IP:127.0.0.1", false), ("IP:127.0.0.1,IP:::1", false),
        ].enumerated() {
            let own = try files.make("server\(number)", names: names)
            let identity = try CertificateFiles(chainPath: own.chainFile, keyPath: own.keyFile).read()
            let server = try await ScriptedServer(.tls, tls: .server(identity))
            defer { server.close() }
            let service = try service(server, trusting: own.chainFile)
            if isBelieved {
                try await service.connect()
                #expect(await service.session?.user == "alice@sip.test", "\(names)")
            } else {
                let error = await #expect(throws: SignalingError.self, "\(names)") { try await service.connect() }
                let words = error?.description ?? "nothing"
                #expect(words.contains("for another name"), "\(names): \(words)")
                #expect(server.received.isEmpty)
            }
            await service.disconnect()
            let other = try self.service(server, trusting: stranger.chainFile)
            await #expect(throws: SignalingError.self, "\(names)") { try await other.connect() }
        }
    }
}
