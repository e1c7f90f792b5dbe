import Core
import Testing

@Suite("Addresses as text")
struct SocketAddressTests {
    @Test(
        "Literal addresses are read and written back",
        arguments: ["127.0.0.1", "192.0.2.33", "0.0.0.0", "::1", "2001:db8::1", "::"])
    func literals(host: String) throws {
        let address = try #require(SocketAddress(host: host, port: 5004))
        #expect(address.host == host)
        #expect(address.port == 5004)
        #expect(address.isIPv6 == host.contains(":"))
        #expect(address.isLoopback == ["127.0.0.1", "::1"].contains(host))
        #expect(address.isUnspecified == ["0.0.0.0", "::"].contains(host))
    }

    @Test(
        "What is no literal address is nil", arguments: ["", "localhost", "1.2.3", "300.1.1.1", "::g", "fe80::1%none9"])
    func notLiteral(host: String) {
        #expect(SocketAddress(host: host, port: 1) == nil)
    }

    @Test("An address prints with its port, IPv6 in brackets")
    func printing() {
        #expect(SocketAddress(host: "127.0.0.1", port: 80)?.description == "127.0.0.1:80")
        #expect(SocketAddress(host: "::1", port: 80)?.description == "[::1]:80")
    }
}
