import Core
import Cryptography
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

@Suite("Digests")
struct DigestTests {
    @Test(
        "HMAC-SHA256 is what RFC 4231 says of keys shorter than a block, as long and longer",
        arguments: [
            (
                [UInt8](repeating: 0x0B, count: 20), bytes("Hi There"),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                bytes("Jefe"), bytes("what do ya want for nothing?"),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                [UInt8](repeating: 0xAA, count: 20), [UInt8](repeating: 0xDD, count: 50),
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
            ),
            (
                [UInt8](repeating: 0xAA, count: 131), bytes("Test Using Larger Than Block-Size Key - Hash Key First"),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
            ([], [], "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
        ] as [([UInt8], [UInt8], String)])
    func hmacSHA256(key: [UInt8], input: [UInt8], code: String) {
        #expect(hex(Digest.hmacSHA256(key, input)) == code)
    }

    @Test("HMAC-SHA256 signs the token of RFC 7515, appendix A.1")
    func tokenOfRFC7515() throws {
        let key = try #require(
            Base64URL.bytes(
                of: "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow".utf8))
        let signed = """
            eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
            eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ
            """
        let code = Digest.hmacSHA256(key, bytes(signed))
        #expect(Base64URL.text(code) == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    }

    @Test(
        "HMAC-SHA1 is what RFC 2202 says",
        arguments: [
            (
                [UInt8](repeating: 0x0B, count: 20), bytes("Hi There"), "b617318655057264e28bc0b6fb378c8ef146be00"
            ),
            (
                bytes("Jefe"), bytes("what do ya want for nothing?"), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"
            ),
            (
                [UInt8](repeating: 0xAA, count: 80), bytes("Test Using Larger Than Block-Size Key - Hash Key First"),
                "aa4ae5e15272d00e95705637ce8a3b55ed402112"
            ),
        ] as [([UInt8], [UInt8], String)])
    func hmacSHA1(key: [UInt8], input: [UInt8], code: String) {
        #expect(hex(Digest.hmacSHA1(key, input)) == code)
    }

    @Test("SHA-256 and MD5 are what FIPS 180 and RFC 1321 say")
    func hashes() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        let short = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        #expect(hex(Digest.sha256([])) == empty)
        #expect(hex(Digest.sha256(bytes("abc"))) == short)
        #expect(hex(Digest.md5(bytes("message digest"))) == "f96b697d7cb7938d525a2f31aaf161d0")
    }

    @Test("Runs of bytes are equal only if they have one length and no bit differs, wherever it is")
    func equality() {
        let run = [UInt8](0..<32)
        #expect(Digest.areEqual(run, run) && Digest.areEqual([], []))
        #expect(!Digest.areEqual(run, run + [0]) && !Digest.areEqual(run, Array(run.dropLast())))
        #expect(!Digest.areEqual([], [0]) && !Digest.areEqual([0], []))
        for index in run.indices {
            for bit in 0..<8 {
                var other = run
                other[index] ^= 1 << UInt8(bit)
                #expect(!Digest.areEqual(run, other))
            }
        }
    }
}
