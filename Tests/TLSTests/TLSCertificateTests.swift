import TLS
import Testing

@Suite("Certificates and keys as values")
struct TLSCertificateTests {
    @Test("A certificate has its names, addresses, times and serial number, and is read from DER and PEM")
    func values() throws {
        let names = ["exchange.test", "192.0.2.1", "2001:db8::1"]
        let identity = try TestAuthority().identity(for: names, to: 2_000_000_000)
        let own = identity.own
        #expect(
            own.names == [
                .dns("exchange.test"), .address([192, 0, 2, 1]),
                .address([0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ])
        #expect(own.notBefore == TestAuthority.start && own.notAfter == 2_000_000_000)
        #expect(own.serial.count == 16 && own.serial.allSatisfy(\.isHexDigit) && own.serial == own.serial.lowercased())
        #expect(TLSCertificate(der: own.der) == own)
        #expect(TLSCertificate.list(pem: try #require(own.pem)) == [own])
    }

    @Test("A PEM text has its certificates in order, and a broken one makes all of it unusable")
    func lists() throws {
        let identity = try TestAuthority().identity()
        let (own, root) = (try #require(identity.own.pem), try #require(identity.issuers.first?.pem))
        let between = Array("# the authority\n".utf8)
        #expect(TLSCertificate.list(pem: own + between + root) == [identity.own] + identity.issuers)
        #expect(TLSCertificate.list(pem: []) == nil)
        #expect(TLSCertificate.list(pem: between) == nil)
        for count in stride(from: 0, to: own.count - 2, by: 13) {
            #expect(TLSCertificate.list(pem: Array(own.prefix(count))) == nil, "\(count)")
        }
        var broken = root
        broken[100] = UInt8(ascii: "!")
        #expect(TLSCertificate.list(pem: own + broken) == nil)
        for count in stride(from: 0, to: identity.own.der.count, by: 11) {
            #expect(TLSCertificate(der: Array(identity.own.der.prefix(count))) == nil, "\(count)")
        }
    }

    @Test("A key of another certificate is none for this one, and no text form of a key shows it")
    func keys() throws {
        let authority = try TestAuthority()
        let (one, other) = (try authority.identity(), try authority.identity())
        #expect(TLSPrivateKey(pem: one.own.pem ?? []) == nil)
        #expect(TLSIdentity(chain: [], key: try key()) == nil)
        #expect(TLSIdentity(chain: [other.own], key: try key()) == nil)
        var text = ""
        dump(one, to: &text)
        #expect(!text.contains("PRIVATE"))
        #expect(try !"\(key())".contains("PRIVATE"))
    }

    private func key() throws -> TLSPrivateKey {
        // Made for this test alone: `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`.
        let text = """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2
            OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r
            1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G
            -----END PRIVATE KEY-----
            """
        return try #require(TLSPrivateKey(pem: Array(text.utf8)))
    }
}
