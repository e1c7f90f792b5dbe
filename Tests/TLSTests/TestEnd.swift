import Cryptography
import TLS
import Testing

/// Lets closures of tests use a session.
final class TestEnd {
    private var session: TLSSession
    private(set) var plain: [UInt8] = []

    init(_ session: consuming TLSSession) { self.session = session }

    var isOpen: Bool { session.isOpen }
    var hasEnded: Bool { session.hasEnded }
    var negotiatedProtocol: String? { session.negotiatedProtocol }
    var presented: [TLSCertificate] { session.presentedCertificates }

    func take() -> [UInt8] {
        var bytes: [UInt8] = []
        session.takeOutgoing(into: &bytes)
        return bytes
    }

    func receive(_ bytes: [UInt8]) throws(TLSError) { try session.receive(bytes.span, into: &plain) }
    func receiveEnd() throws(TLSError) { try session.receiveEnd() }
    func send(_ bytes: [UInt8]) throws(TLSError) { try session.send(bytes.span) }
    func close() { session.close() }
}

/// Two ends, and the bytes between them.
struct Pair {
    let client: TestEnd
    let server: TestEnd
    /// How many bytes arrive at once.
    var piece = Int.max

    /// Carries bytes back and forth until neither end has any.
    func run() throws(TLSError) {
        while true {
            let (forth, back) = (client.take(), server.take())
            if forth.isEmpty, back.isEmpty { return }
            try carry(forth, to: server)
            try carry(back, to: client)
        }
    }

    private func carry(_ bytes: [UInt8], to end: TestEnd) throws(TLSError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            try end.receive(Array(rest.prefix(piece)))
            rest = rest.dropFirst(piece)
        }
    }
}

/// An authority, and certificates that it signs.
struct TestAuthority {
    private let authority: CertifiedKey
    let root: TLSCertificate
    static let (start, end) = (1_700_000_000, 4_000_000_000)

    init(from start: Int = TestAuthority.start, to end: Int = TestAuthority.end) throws {
        authority = try CertificateAuthority.make(name: "Test", from: start, to: end)
        root = try #require(TLSCertificate.list(pem: authority.certificate)?.first)
    }

    func identity(
        for names: [String] = ["exchange.test"], from start: Int = TestAuthority.start, to end: Int = TestAuthority.end
    ) throws -> TLSIdentity {
        let leaf = try CertificateAuthority.issue(for: names, from: start, to: end, by: authority)
        let chain = try #require(TLSCertificate.list(pem: leaf.certificate + authority.certificate))
        let key = try #require(TLSPrivateKey(pem: leaf.key))
        return try #require(TLSIdentity(chain: chain, key: key))
    }
}
