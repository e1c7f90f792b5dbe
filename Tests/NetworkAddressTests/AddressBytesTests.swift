import Core
import TestSupport
import Testing

@Suite("Addresses as bytes")
struct AddressBytesTests {
    @Test(
        "An address is made of its bytes, and gives them back",
        arguments: [
            ("192.0.2.1", [192, 0, 2, 1] as [UInt8]),
            ("2001:db8::5", [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [5]),
        ])
    func bytes(host: String, bytes: [UInt8]) throws {
        let address = try #require(SocketAddress(host: host, port: 5_004))
        #expect(address.addressBytes == bytes)
        #expect(SocketAddress(addressBytes: bytes, port: 5_004) == address)
        #expect(address.withPort(9).port == 9)
        #expect(address.withPort(5_004) == address)
    }

    @Test(
        "A message's literal has no zone, and nothing else around it",
        arguments: [
            "fe80::1%lo", "192.0.2.1%lo", "192.0.2.1\0x", " 192.0.2.1", "192.0.2", "1:2", "[::1]", "", "example.org",
        ])
    func noLiteral(text: String) {
        #expect(SocketAddress(literal: text) == nil)
    }

    @Test("A literal is read as any address, and an IPv4 address within IPv6 has four bytes")
    func literal() throws {
        #expect(SocketAddress(literal: "192.0.2.1", port: 7) == SocketAddress(host: "192.0.2.1", port: 7))
        #expect(SocketAddress(literal: "2001:DB8::5") == SocketAddress(host: "2001:db8::5", port: 0))
        #expect(try #require(SocketAddress(literal: "::ffff:192.0.2.1")).unmappedBytes == [192, 0, 2, 1])
        #expect(try #require(SocketAddress(literal: "192.0.2.1")).unmappedBytes == [192, 0, 2, 1])
        #expect(try #require(SocketAddress(literal: "2001:db8::5")).unmappedBytes.count == 16)
    }

    @Test("Multicast is 224.0.0.0/4 and ff00::/8")
    func multicast() throws {
        for (text, isMulticast) in [
            ("224.0.0.0", true), ("239.255.255.255", true), ("240.0.0.1", false), ("223.255.255.255", false),
            ("ff02::1", true), ("fe80::1", false),
        ] {
            #expect(try #require(SocketAddress(literal: text)).isMulticast == isMulticast, "\(text)")
        }
    }

    @Test("Any bytes come back the same, and any other number of them is refused")
    func anyBytes() {
        var generator = SeededGenerator(seed: 1)
        for count in [4, 16] {
            for _ in 0..<200 {
                let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
                #expect(SocketAddress(addressBytes: bytes, port: 1)?.addressBytes == bytes)
            }
        }
        for count in [0, 3, 5, 15, 17] {
            #expect(SocketAddress(addressBytes: [UInt8](repeating: 1, count: count), port: 1) == nil)
        }
    }

    @Test(
        "Addresses of the local link, and unassigned ones, are distinguished",
        arguments: [
            ("fe80::1", true, false), ("febf::1", true, false), ("fec0::1", false, false),
            ("2001:db8::1", false, false),
            ("254.128.0.1", false, true), ("ff02::1", false, true), ("224.0.0.251", false, true),
            ("255.255.255.255", false, true), ("0.0.0.0", false, true), ("::", false, true), ("10.0.0.1", false, false),
        ])
    func kinds(host: String, isLinkLocal: Bool, isUnusable: Bool) throws {
        let address = try #require(SocketAddress(host: host, port: 5_004))
        #expect(address.isLinkLocalIPv6 == isLinkLocal)
        #expect(address.isUnusableAsPeer == isUnusable)
        #expect(address.withPort(0).isUnusableAsPeer)
    }
}
