import TLS
import TestSupport
import Testing

@Suite("TLS: the client's first message, and answers that are no TLS")
struct TLSGarbageTests {
    private func client(_ host: String = "relay.example") throws -> TestEnd {
        TestEnd(try TLSSession(to: host, in: .client(trusting: .system)))
    }

    @Test("The first message contains the host's name, but no address")
    func names() throws {
        func contains(_ hello: [UInt8], _ text: String) -> Bool {
            let name = Array(text.utf8)
            return hello.indices.contains { hello[$0...].starts(with: name) }
        }
        #expect(contains(try client("relay.example").take(), "relay.example"))
        #expect(contains(try client("relay.example.").take(), "relay.example"))
        #expect(!contains(try client("relay.example.").take(), "relay.example."))
        #expect(!contains(try client("192.0.2.1").take(), "192.0.2.1"))
        #expect(!contains(try client("2001:db8::1").take(), "2001:db8::1"))
    }

    @Test("Before the handshake is complete nothing can be sent")
    func notOpen() throws {
        let client = try client()
        _ = client.take()
        try client.send([1, 2, 3])
        #expect(client.take().isEmpty && !client.isOpen)
    }

    @Test("An answer that is no TLS ends the connection with a reason", arguments: 0..<50)
    func garbage(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let client = try client()
        var noise = (0..<400).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        if seed % 2 == 0 { noise.replaceSubrange(0..<5, with: [22, 3, 3, 0, 120]) }
        #expect(throws: TLSError.self) { try client.receive(noise) }
        #expect(client.plain.isEmpty && !client.isOpen)
    }

    @Test("An answer in plain text is known as one", arguments: ["HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail\r\n"])
    func plainText(_ answer: String) throws {
        let client = try client()
        let error = try #require(throws: TLSError.self) { try client.receive(Array(answer.utf8)) }
        #expect(error.code == .plainText && error.description.contains("relay.example"))
    }

    @Test("A file of authorities that does not exist is named")
    func noAuthorities() {
        let error = #expect(throws: TLSError.self) {
            _ = try TLSContext.client(trusting: .file("/nowhere/roots.pem"))
        }
        #expect(error?.description.contains("/nowhere/roots.pem") == true)
    }
}
