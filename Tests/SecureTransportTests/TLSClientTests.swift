import SecureTransport
import TestSupport
import Testing

/// The client without a server; with one it is tried by the calls through a TURN server.
@Suite("TLS: the client's first words, and what is no answer")
struct TLSClientTests {
    private func client(_ hostName: String = "relay.example") throws -> (client: TLSClientBox, hello: [UInt8]) {
        var client = try TLSClient(to: hostName, trusting: .system)
        var hello: [UInt8] = []
        client.takeOutgoing(into: &hello)
        return (TLSClientBox(client), hello)
    }

    @Test("The first words name the host, but no address")
    func names() throws {
        func contains(_ hello: [UInt8], _ text: String) -> Bool {
            let name = Array(text.utf8)
            return hello.indices.contains { hello[$0...].starts(with: name) }
        }
        #expect(contains(try client("relay.example").hello, "relay.example"))
        #expect(!contains(try client("192.0.2.1").hello, "192.0.2.1"))
        #expect(!contains(try client("2001:db8::1").hello, "2001:db8::1"))
    }

    @Test("Before the handshake is over nothing can be sent")
    func notOpen() throws {
        let (box, _) = try client()
        try box.client.send([1, 2, 3])
        var bytes: [UInt8] = []
        box.client.takeOutgoing(into: &bytes)
        #expect(bytes.isEmpty && !box.client.isOpen)
    }

    @Test("An answer that is none ends the connection with a reason", arguments: 0..<50)
    func garbage(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let (box, _) = try client()
        var noise = (0..<400).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        if seed % 2 == 0 { noise.replaceSubrange(0..<5, with: [22, 3, 3, 0, 120]) }
        var plain: [UInt8] = []
        #expect(throws: TLSError.self) { try box.client.receive(noise[...], into: &plain) }
        #expect(plain.isEmpty && !box.client.isOpen)
    }

    @Test("A file of authorities that is not there is named")
    func noAuthorities() {
        let error = #expect(throws: TLSError.self) {
            _ = try TLSClient(to: "relay.example", trusting: .file("/nowhere/roots.pem"))
        }
        #expect(error?.description.contains("/nowhere/roots.pem") == true)
    }
}

/// Lets closures of tests use a client.
private final class TLSClientBox {
    var client: TLSClient
    init(_ client: consuming TLSClient) { self.client = client }
}
