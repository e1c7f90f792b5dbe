import Core
import ICE
import Testing

/// The messages that RFC 5769 prints.
enum Vectors {
    static let password = "VOkJxbRl1RmTxUk/WvJxBt"
    static let request = bytes(
        """
        000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b1
        51263b36000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf
        """)
    static let responseIPv4 = bytes(
        """
        0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643000800142b91f599
        fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96
        """)
    static let responseIPv6 = bytes(
        """
        010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000140002a1470113a9faa5d3f179bc25f4b5
        bed2b9d900080014a382954e4be67bf11784c97c8292c275bfe3ed4180280004c8fb0b4c
        """)
    static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}

@Suite("STUN's published messages")
struct STUNVectorTests {
    @Test("RFC 5769's request is read, and its protection holds with its password and with no other")
    func request() throws {
        let message = try STUNMessage(parsing: Vectors.request)
        #expect(message.messageClass == .request)
        #expect(message.method == .binding)
        #expect(message.text(.software) == "STUN test client")
        #expect(message.text(.username) == "evtj:h6vY")
        #expect(message.uint32(.priority) == 0x6E00_01FF)
        #expect(message.uint64(.iceControlled) == 0x932F_F9B1_5126_3B36)
        #expect(message.integrity(STUNKey(shortTerm: Vectors.password)) == .valid)
        #expect(message.integrity(STUNKey(shortTerm: "VOkJxbRl1RmTxUk/WvJxBT")) == .invalid)
        #expect(message.fingerprint == .valid)
        #expect(message.unknownRequiredAttributes.isEmpty)
    }

    @Test(
        "RFC 5769's responses contain the mapped address",
        arguments: [
            (Vectors.responseIPv4, "192.0.2.1"),
            (Vectors.responseIPv6, "2001:db8:1234:5678:11:2233:4455:6677"),
        ])
    func responses(bytes: [UInt8], host: String) throws {
        let message = try STUNMessage(parsing: bytes)
        #expect(message.messageClass == .success)
        #expect(message.address(.xorMappedAddress) == SocketAddress(host: host, port: 32_853))
        #expect(message.integrity(STUNKey(shortTerm: Vectors.password)) == .valid)
        #expect(message.fingerprint == .valid)
    }

    @Test("RFC 5769's long-term request is made byte for byte from its parts")
    func longTerm() throws {
        let name = "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}"
        var builder = STUNBuilder(
            .request, .binding, TransactionID(high: 0x78AD_3433_C6AD_72C0, low: 0x29DA_412E))
        builder.append(.username, name)
        builder.append(.nonce, "f//499k954d6OL34oL9FSTvy64sA")
        builder.append(.realm, "example.org")
        let key = STUNKey(longTerm: name, realm: "example.org", password: "TheMatrIX", algorithm: .md5)
        let bytes = builder.finish(key: key)
        #expect(Array(bytes.suffix(20)) == Vectors.bytes("f67024656dd64a3e02b8e0712e85c9a28ca89666"))
        #expect(try STUNMessage(parsing: bytes).integrity(key) == .valid)
        #expect(Array(bytes.prefix(20)) == Vectors.bytes("000100602112a44278ad3433c6ad72c029da412e"))
    }

    @Test("A request built from the same fields is RFC 5769's, save for its padding")
    func built() throws {
        var builder = STUNBuilder(
            .request, .binding, TransactionID(high: 0xB7E7_A701_BC34_D686, low: 0xFA87_DFAE))
        builder.append(.software, "STUN test client")
        builder.append(.priority, 0x6E00_01FF as UInt32)
        builder.append(.iceControlled, 0x932F_F9B1_5126_3B36 as UInt64)
        builder.append(.username, "evtj:h6vY")
        let bytes = builder.finish(key: STUNKey(shortTerm: Vectors.password), fingerprint: true)
        #expect(bytes.count == Vectors.request.count)
        // The vector pads with spaces, we with zeros; up to there all is the same.
        #expect(bytes.prefix(73) == Vectors.request.prefix(73))
        let message = try STUNMessage(parsing: bytes)
        #expect(message.integrity(STUNKey(shortTerm: Vectors.password)) == .valid)
        #expect(message.fingerprint == .valid)
    }
}
