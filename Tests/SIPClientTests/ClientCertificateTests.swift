import CallControl
import Foundation
import HTTPTransport
import Logging
import SIP
import SIPClient
import SIPSignaling
import SignalingClient
import TLS
import Testing

@Suite("A certificate that is shown to a SIP server", .timeLimit(.minutes(1)))
struct ClientCertificateTests {
    /// A server that takes who shows this certificate.
    private func server(
        _ own: SIPServiceConfiguration.ClientCertificate, asking client: SIPServiceConfiguration.ClientCertificate
    ) async throws -> ScriptedServer {
        let identity = try CertificateFiles(chainPath: own.chainFile, keyPath: own.keyFile).read()
        let shown = try CertificateFiles(chainPath: client.chainFile, keyPath: client.keyFile).read()
        return try await ScriptedServer(.tls, tls: .server(identity, demanding: [shown.own]))
    }

    private func service(
        _ server: ScriptedServer, trusting root: String, showing shown: SIPServiceConfiguration.ClientCertificate?
    ) throws -> SIPService {
        let uri = try #require(AnyURI("sip:alice@sip.test"))
        var account = SIPAccountSettings(address: NameAddress(uri), username: "alice", password: "secret")
        account.givesUpAtOnce = true
        var configuration = SIPServiceConfiguration(
            account: account, server: .init(host: "127.0.0.1", port: server.port, transport: .tls))
        configuration.trustRootFile = root
        configuration.certificate = shown
        return try SIPService(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test("A server that asks for a certificate accepts only clients that show it")
    func shown() async throws {
        let files = try CertificateFolder()
        let (own, ours, other) = (try files.make("server"), try files.make("client"), try files.make("other"))
        let server = try await server(own, asking: ours)
        defer { server.close() }
        let service = try service(server, trusting: own.chainFile, showing: ours)
        try await service.connect()
        #expect(await service.session?.user == "alice@sip.test")
        await service.disconnect()
        for shown in [nil, other] {
            let stranger = try self.service(server, trusting: own.chainFile, showing: shown)
            await #expect(throws: SignalingError.self) { try await stranger.connect() }
        }
    }

    @Test("Replaced files are used at the next connection, and unusable ones change nothing")
    func renewed() async throws {
        let files = try CertificateFolder()
        let (own, ours, next) = (try files.make("server"), try files.make("client"), try files.make("next"))
        let (first, second) = (try await server(own, asking: ours), try await server(own, asking: next))
        defer {
            first.close()
            second.close()
        }
        let early = try service(first, trusting: own.chainFile, showing: ours)
        let late = try service(second, trusting: own.chainFile, showing: ours)
        // The key is replaced last, as tools of renewal do: for a moment the two do not fit.
        try Data(contentsOf: URL(fileURLWithPath: next.chainFile)).write(to: URL(fileURLWithPath: ours.chainFile))
        try await early.connect()
        await early.disconnect()
        try Data(contentsOf: URL(fileURLWithPath: next.keyFile)).write(to: URL(fileURLWithPath: ours.keyFile))
        try await late.connect()
        await late.disconnect()
    }

    @Test("Badly renewed files are known until they are fixed, and the certificate before is shown")
    func renewedBadly() throws {
        let files = try CertificateFolder()
        let (ours, other) = (try files.make("client"), try files.make("other"))
        let chain = URL(fileURLWithPath: ours.chainFile)
        let good = try Data(contentsOf: chain)
        let trust = try TLSTrust.system.showing(CertificateFiles(chainPath: ours.chainFile, keyPath: ours.keyFile))
        let context = try trust.context()
        #expect(trust.fault == nil)
        try Data(contentsOf: URL(fileURLWithPath: other.chainFile)).write(to: chain)
        #expect(try trust.context() === context)
        #expect(trust.fault?.part == .key)
        try FileManager.default.removeItem(at: chain)
        #expect(try trust.context() === context)
        #expect(trust.fault?.part == .chain)
        try good.write(to: chain)
        #expect(try trust.context() === context)
        #expect(trust.fault == nil)
    }

    @Test("Files that cannot be used are named, with what is wrong")
    func faults() throws {
        let files = try CertificateFolder()
        let (ours, other) = (try files.make("client"), try files.make("other"))
        typealias Certificate = SIPServiceConfiguration.ClientCertificate
        try ours.check()
        let missing = Certificate(chainFile: "\(files.path)/none", keyFile: ours.keyFile)
        let mixed = Certificate(chainFile: ours.chainFile, keyFile: other.keyFile)
        let swapped = Certificate(chainFile: ours.chainFile, keyFile: ours.chainFile)
        for (certificate, isOfKey, words) in [
            (missing, false, "holds no certificate in PEM form"),
            (mixed, true, "is not the private key of the certificate"),
            (swapped, true, "holds no private key in PEM form"),
        ] {
            let fault = try #require(throws: Certificate.Fault.self) { try certificate.check() }
            #expect(fault.isOfKey == isOfKey && fault.message.contains(words), "\(fault)")
        }
    }
}
