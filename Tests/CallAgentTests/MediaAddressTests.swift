import CallAgent
import Core
import Testing

@Suite("Where a device receives media")
struct MediaAddressTests {
    private func address(_ host: String?, server: String, port: UInt16 = 0) throws -> MediaAddress {
        var configuration = DeviceConfiguration(account: AccountConfiguration(server: server))
        configuration.media.address = try host.map { try #require(SocketAddress(host: $0, port: 0)) }
        configuration.media.port = port
        return MediaAddress(for: configuration)
    }

    @Test("The wildcard address means all addresses, and never stands in a description", arguments: ["0.0.0.0", "::"])
    func wildcard(host: String) throws {
        let media = try address(host, server: "http://127.0.0.1:8555", port: 4_000)
        #expect(media.bindAddress == SocketAddress(host: host, port: 4_000))
        #expect(media.address == SocketAddress(host: "127.0.0.1", port: 4_000))
        let six = try address(host, server: "http://[::1]:8555")
        #expect(six.bindAddress.isUnspecified)
        #expect(six.address == SocketAddress(host: "::1", port: 0))
    }

    @Test("A server whose name nobody knows yet keeps no device from starting")
    func unknownServer() throws {
        // Longer than a label of a name may be, so that no name server is asked (RFC 1035 §2.3.4).
        let media = try address(nil, server: "https://\(String(repeating: "a", count: 64)).invalid", port: 4_000)
        #expect(media.bindAddress == SocketAddress(host: "0.0.0.0", port: 4_000))
        #expect(!media.address.isUnspecified)
        #expect(media.address.port == 4_000)
    }

    @Test("An address is the only one that is bound to, and stands in descriptions")
    func pinned() throws {
        let media = try address("127.0.0.2", server: "http://127.0.0.1:8555", port: 4_000)
        #expect(media.bindAddress == SocketAddress(host: "127.0.0.2", port: 4_000))
        #expect(media.address == media.bindAddress)
    }

    @Test("Without an address, an exchange on this machine means the loopback address alone")
    func trial() throws {
        let media = try address(nil, server: "http://127.0.0.1:8555", port: 4_000)
        #expect(media.bindAddress == SocketAddress(host: "127.0.0.1", port: 4_000))
        #expect(media.address == media.bindAddress)
    }
}
