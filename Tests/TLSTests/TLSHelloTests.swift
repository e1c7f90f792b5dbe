import TLS
import Testing

/// TLS 1.2 and 1.3 with ephemeral keys and AEAD, and nothing else (RFC 9325 §3.1.1, §4.2): what a peer can choose is what the
/// client's hello has, so its bytes are read here; and a server is given hellos that have only what is too old.
@Suite("What TLS may choose from")
struct TLSHelloTests {
    @Test("A client offers TLS 1.3 and 1.2, and suites of ephemeral keys with AEAD alone")
    func offer() throws {
        let hello = try Hello(client())
        #expect(hello.versions == [0x0304, 0x0303])
        let aead13: Set<UInt16> = [0x1301, 0x1302, 0x1303]
        // ECDHE with GCM or ChaCha20-Poly1305.
        let aead12: Set<UInt16> = [0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9]
        // No suite: secure renegotiation is understood (RFC 5746 §3.3).
        let signaling: Set<UInt16> = [0x00FF]
        #expect(Set(hello.suites).isSubset(of: aead13.union(aead12).union(signaling)))
        #expect(!aead13.isDisjoint(with: hello.suites) && !aead12.isDisjoint(with: hello.suites))
    }

    @Test(
        "A server refuses a hello of which it can choose nothing: CBC, RSA key exchange, RC4, TLS 1.1 and 1.0",
        arguments: [
            Change.suite(0xC009), .suite(0xC013), .suite(0xC027), .suite(0x002F), .suite(0x0035), .suite(0x003C),
            .suite(0x009C),
            .suite(0x0005), .versions([0x0302, 0x0301]),
        ])
    func refusal(_ change: Change) throws {
        var hello = try Hello(client())
        switch change {
        case .suite(let suite): hello.set(suites: suite)
        case .versions(let versions): hello.set(versions: versions)
        }
        let server = try server()
        let error = #expect(throws: TLSError.self) { try server.receive(hello.bytes) }
        #expect(error?.code == .broken)
        #expect(!server.isOpen)
    }

    @Test("A server takes a hello that was taken apart and put together")
    func control() throws {
        var hello = try Hello(client())
        hello.set(versions: hello.versions)
        let server = try server()
        try server.receive(hello.bytes)
        #expect(server.take().first == 22)  // A handshake record.
    }

    enum Change: Sendable {
        case suite(UInt16)
        case versions([UInt16])
    }

    private func client() throws -> [UInt8] {
        let authority = try TestAuthority()
        return TestEnd(try TLSSession(to: "exchange.test", in: try .client(trusting: .only([authority.root])))).take()
    }

    private func server() throws -> TestEnd {
        TestEnd(try TLSSession(of: try .server(try TestAuthority().identity(), protocols: [])))
    }
}

/// A record with a ClientHello (RFC 8446 §4.1.2), whose suites and versions can be overwritten in place.
private struct Hello {
    private(set) var bytes: [UInt8]
    private var suitesPlace: Range<Int>
    private var versionsPlace: Range<Int>

    init(_ bytes: [UInt8]) throws {
        self.bytes = bytes
        func number(_ place: Int) -> Int { Int(bytes[place]) << 8 | Int(bytes[place + 1]) }
        // Record header, handshake header, version, random; then the session id.
        var place = 5 + 4 + 2 + 32
        try #require(bytes.count > place && bytes[0] == 22 && bytes[5] == 1)
        place += 1 + Int(bytes[place])
        suitesPlace = (place + 2)..<(place + 2 + number(place))
        place = suitesPlace.upperBound
        place += 1 + Int(bytes[place]) + 2
        var versions: Range<Int>?
        while place + 4 <= bytes.count {
            let (kind, count) = (number(place), number(place + 2))
            if kind == 43 { versions = (place + 5)..<(place + 4 + count) }
            place += 4 + count
        }
        versionsPlace = try #require(versions)
    }

    var suites: [UInt16] { numbers(suitesPlace) }
    var versions: [UInt16] { numbers(versionsPlace) }

    private func numbers(_ place: Range<Int>) -> [UInt16] {
        stride(from: place.lowerBound, to: place.upperBound, by: 2).map {
            UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
        }
    }

    /// Writes one suite over all of them.
    mutating func set(suites suite: UInt16) { write(suites.map { _ in suite }, at: suitesPlace) }
    mutating func set(versions: [UInt16]) { write(versions, at: versionsPlace) }

    private mutating func write(_ numbers: [UInt16], at place: Range<Int>) {
        for (index, number) in zip(stride(from: place.lowerBound, to: place.upperBound, by: 2), numbers) {
            (bytes[index], bytes[index + 1]) = (UInt8(number >> 8), UInt8(truncatingIfNeeded: number))
        }
    }
}
