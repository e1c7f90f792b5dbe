import TLS
import TestSupport
import Testing

@Suite("TLS between two ends in memory")
struct TLSSessionTests {
    private let authority: TestAuthority

    init() throws { authority = try TestAuthority() }

    private func pair(
        to host: String = "exchange.test", names: [String] = ["exchange.test"], check: TLSSession.Check = .name,
        trusting roots: TrustRoots? = nil, offering: [String] = [], speaking: [String] = []
    ) throws -> Pair {
        let context = try TLSContext.client(trusting: roots ?? .only([authority.root]))
        let server = try TLSContext.server(try authority.identity(for: names), protocols: speaking)
        return Pair(
            client: TestEnd(try TLSSession(to: host, in: context, check: check, protocols: offering)),
            server: TestEnd(try TLSSession(of: server)))
    }

    @Test("Messages arrive whole, however the bytes are cut", arguments: [1, 7, 1_000, .max])
    func messages(piece: Int) throws {
        var pair = try pair()
        pair.piece = piece
        try pair.run()
        #expect(pair.client.isOpen && pair.server.isOpen)
        // Records have up to 16 KiB, so this is three of them, and one of a byte.
        let long = (0..<40_000).map { UInt8(truncatingIfNeeded: $0) }
        try pair.client.send(long)
        try pair.client.send([1])
        try pair.server.send([2])
        try pair.run()
        #expect(pair.server.plain == long + [1])
        #expect(pair.client.plain == [2])
    }

    @Test("A message that was cut off is no end, and an end without close_notify is a truncation")
    func truncation() throws {
        let pair = try pair()
        let early = #expect(throws: TLSError.self) { try pair.server.receiveEnd() }
        #expect(early?.code == .closedInHandshake)
        try pair.run()
        try pair.client.send([UInt8](repeating: 1, count: 100))
        let record = pair.client.take()
        try pair.server.receive(Array(record.dropLast()))
        #expect(pair.server.plain.isEmpty && !pair.server.hasEnded)
        let late = #expect(throws: TLSError.self) { try pair.server.receiveEnd() }
        #expect(late?.code == .truncated)
    }

    @Test("close_notify ends one direction, and the other end can still send until it closes, too")
    func closing() throws {
        let pair = try pair()
        try pair.run()
        pair.client.close()
        try pair.run()
        #expect(pair.server.hasEnded && !pair.client.hasEnded)
        try pair.server.receiveEnd()
        try pair.server.send([5])
        pair.server.close()
        try pair.run()
        #expect(pair.client.plain == [5] && pair.client.hasEnded)
        try pair.client.receiveEnd()
    }

    @Test(
        "A certificate must be for the configured name or address",
        arguments: [
            ("exchange.test", ["exchange.test"], true), ("EXCHANGE.test.", ["exchange.test"], true),
            ("a.exchange.test", ["*.exchange.test"], true), ("exchange.test", ["*.exchange.test"], false),
            ("a.b.exchange.test", ["*.exchange.test"], false), ("exchange.test", ["other.test"], false),
            ("192.0.2.1", ["192.0.2.1"], true), ("2001:db8::1", ["2001:db8::1"], true),
            ("192.0.2.1", ["192.0.2.2"], false), ("exchange.test", ["192.0.2.1"], false),
            ("192.0.2.1", ["exchange.test"], false),
        ])
    func names(_ host: String, _ names: [String], _ isRight: Bool) throws {
        let pair = try pair(to: host, names: names)
        #expect(try authority.identity(for: names).own.isFor(host) == isRight)
        if isRight { return try pair.run() }
        let error = #expect(throws: TLSError.self) { try pair.run() }
        #expect(error?.code == .wrongName)
        #expect(!pair.client.isOpen)
    }

    @Test("A certificate of another authority, of the past or of the future is not trusted; the server gets an alert")
    func untrusted() throws {
        let stranger = try TestAuthority()
        let server = try TLSContext.server(try authority.identity())
        for (roots, identity) in [
            (TrustRoots.only([stranger.root]), try authority.identity()), (.only([]), try authority.identity()),
            (.system, try authority.identity()),
            (.only([authority.root]), try authority.identity(to: TestAuthority.start + 1)),
            (.only([authority.root]), try authority.identity(from: TestAuthority.end - 1)),
        ] {
            let pair = Pair(
                client: TestEnd(try TLSSession(to: "exchange.test", in: .client(trusting: roots))),
                server: TestEnd(try TLSSession(of: .server(identity))))
            try pair.server.receive(pair.client.take())
            let error = #expect(throws: TLSError.self) { try pair.client.receive(pair.server.take()) }
            #expect(error?.code == .untrusted)
            let alert = #expect(throws: TLSError.self) { try pair.server.receive(pair.client.take()) }
            #expect(alert?.code == .refusedByPeer)
        }
        // The same with what is right.
        let pair = Pair(
            client: TestEnd(
                try TLSSession(to: "exchange.test", in: .client(trusting: .systemAnd([authority.root])))),
            server: TestEnd(try TLSSession(of: server)))
        try pair.run()
        #expect(pair.client.isOpen)
    }

    @Test("A judge sees the certificates after they were verified, and its refusal is one of the name")
    func judged() throws {
        let own = try authority.identity(for: ["other.test"])
        for isServer in [true, false] {
            let pair = Pair(
                client: TestEnd(
                    try TLSSession(
                        to: "exchange.test", in: .client(trusting: .only([authority.root])),
                        check: .judged { [root = authority.root] chain in
                            isServer && chain == [own.own, root]
                        })),
                server: TestEnd(try TLSSession(of: .server(own))))
            if isServer {
                try pair.run()
                #expect(pair.client.isOpen && pair.client.presented.count == 2)
            } else {
                let error = #expect(throws: TLSError.self) { try pair.run() }
                #expect(error?.code == .wrongName)
            }
        }
        // What is not trusted is not judged.
        let stranger = try pair(check: .judged { _ in true }, trusting: .only([]))
        let error = #expect(throws: TLSError.self) { try stranger.run() }
        #expect(error?.code == .untrusted)
    }

    @Test("A client that only looks gets the certificates, and its handshake fails")
    func shown() throws {
        let pair = try pair(check: .shown, trusting: .only([]))
        #expect(throws: TLSError.self) { try pair.run() }
        #expect(pair.client.presented.map(\.names) == [[.dns("exchange.test")], []])
        #expect(pair.client.presented.last == authority.root)
        #expect(!pair.client.isOpen)
    }

    @Test("A server that demands a certificate refuses none at all, a stranger's, and one for servers")
    func clientCertificates() throws {
        let stranger = try TestAuthority()
        let server = try TLSContext.server(authority.identity(), demanding: [authority.root])
        for shown in [nil, try stranger.identity(for: ["alice"]), try authority.identity(for: ["alice"])] {
            let pair = Pair(
                client: TestEnd(
                    try TLSSession(
                        to: "exchange.test", in: .client(trusting: .only([authority.root]), showing: shown))),
                server: TestEnd(try TLSSession(of: server)))
            #expect(throws: TLSError.self) { try pair.run() }
            #expect(!pair.server.isOpen)
        }
    }

    @Test(
        "Both ends agree on a protocol that the client offers, the server's favourite first, or on none",
        arguments: [
            (["http/1.1"], ["http/1.1"], "http/1.1"), (["h2", "http/1.1"], ["http/1.1"], "http/1.1"),
            (["a", "b"], ["b", "a"], "b"), (["h2"], ["http/1.1"], nil), ([], ["http/1.1"], nil), (["h2"], [], nil),
        ] as [([String], [String], String?)])
    func protocols(_ offered: [String], _ spoken: [String], _ agreed: String?) throws {
        let pair = try pair(offering: offered, speaking: spoken)
        try pair.run()
        #expect(pair.client.negotiatedProtocol == agreed && pair.server.negotiatedProtocol == agreed)
    }

    @Test("A changed byte ends the connection, and nothing of its record is passed on", arguments: 0..<20)
    func changed(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pair = try pair()
        try pair.run()
        try pair.client.send([UInt8](repeating: 7, count: 200))
        var record = pair.client.take()
        record[Int.random(in: 5..<record.count, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        let error = #expect(throws: TLSError.self) { try pair.server.receive(record) }
        #expect(error?.code == .broken)
        #expect(pair.server.plain.isEmpty)
    }

    @Test("Noise in place of the client's first message ends a server's connection", arguments: 0..<50)
    func noise(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pair = try pair()
        var noise = (0..<600).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        if seed % 2 == 0 { noise.replaceSubrange(0..<6, with: [22, 3, 1, 2, 0, 1]) }
        #expect(throws: TLSError.self) { try pair.server.receive(noise) }
    }
}
