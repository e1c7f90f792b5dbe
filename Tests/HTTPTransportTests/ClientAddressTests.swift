import HTTPTransport
import Core
import Testing

@Suite struct ClientAddressTests {
    private func address(_ text: String) throws -> ClientAddress { try #require(ClientAddress(text)) }

    @Test("An address is one of IPv4 or a /64 of IPv6, in each of its forms; a trusted proxy speaks for its clients")
    func addresses() throws {
        #expect(ClientAddress("2001:db8::1") == ClientAddress("[2001:db8::ffff]"))
        #expect(ClientAddress("2001:db8::1") != ClientAddress("2001:db8:0:1::1"))
        #expect(ClientAddress("::ffff:192.0.2.1") == ClientAddress("192.0.2.1"))
        #expect(ClientAddress("fe80::1%eth0") == ClientAddress("fe80::2"))
        for text in ["", "localhost", "192.0.2", "192.0.2.1:80", "[", "[]", "192.0.2.1, 192.0.2.2"] {
            #expect(ClientAddress(text) == nil, "\(text)")
        }
        let (proxy, client, other) = (try address("127.0.0.1"), try address("192.0.2.7"), try address("10.0.0.1"))
        func of(_ peer: ClientAddress, _ forwarded: String...) -> ClientAddress {
            .of(peer: peer, forwarded: forwarded, proxies: [proxy, other])
        }
        #expect(of(client, "203.0.113.9") == client, "others' word counts for nothing")
        #expect(of(proxy) == proxy)
        #expect(of(proxy, "203.0.113.9, 192.0.2.7") == client, "what the client made up itself comes first")
        #expect(of(proxy, "203.0.113.9", "192.0.2.7, 10.0.0.1") == client)
        #expect(of(proxy, "nonsense") == proxy)
    }
}
