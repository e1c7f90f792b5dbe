import TLS
import Testing

@testable import SecureTransport

@Suite("What OpenSSL says about failures")
struct LibraryFailureTests {
    @Test(
        "Refusals of a certificate's kind, ours or the peer's, are distinguished from other failures",
        arguments: [
            (378, true),  // wrong curve
            (383, true),  // wrong certificate type
            (399, true),  // key too small
            (1_043, true),  // the peer's alert: unsupported certificate
            (193, false),  // no shared cipher
            (1_040, false),  // the peer's alert: handshake failure
            (0, false),
        ])
    func kinds(reason: Int32, isAboutCertificate: Bool) {
        let failure = OpenSSLFailure(reason: reason, message: "")
        #expect(failure.isAboutKindOfCertificate == isAboutCertificate)
    }
}
