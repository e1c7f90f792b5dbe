import Foundation
import SecureTransport
import Testing
import Core

extension DTLSRealTimeTests {
    private static let ecdsa = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]

    @Test(
        "OpenSSL's own server, with an RSA certificate, exports the keys that we have",
        arguments: DTLSConfiguration().suites)
    func openSSLServer(suite: SRTPSuite) throws {
        let peer = try OpenSSLProcess.Certificate(key: ["rsa:2048"])
        defer { peer.remove() }
        let socket = try LoopbackSocket()
        let port = try LoopbackSocket().port
        let tool = try OpenSSLProcess(
            ["s_server", "-dtls1_2", "-accept", "127.0.0.1:\(port)", "-naccept", "1", "-Verify", "1"]
                + OpenSSLProcess.using(peer) + OpenSSLProcess.offering(suite))
        socket.peer = port
        try expectSameKeys(.active, socket, tool, peer, suite)
    }

    @Test(
        "OpenSSL's own client, with an ECDSA certificate, exports the keys that we have",
        arguments: DTLSConfiguration().suites)
    func openSSLClient(suite: SRTPSuite) throws {
        let peer = try OpenSSLProcess.Certificate(key: Self.ecdsa)
        defer { peer.remove() }
        let socket = try LoopbackSocket()
        let tool = try OpenSSLProcess(
            ["s_client", "-dtls1_2", "-connect", "127.0.0.1:\(socket.port)"]
                + OpenSSLProcess.using(peer) + OpenSSLProcess.offering(suite))
        let output = try expectSameKeys(.passive, socket, tool, peer, suite)
        for line in [
            "Server Temp Key: X25519, 253 bits", "Compression: NONE", "    Protocol  : DTLSv1.2", "    Session-ID: ",
            "    Extended master secret: yes",
        ] {
            #expect(output.contains("\(line)\n"))
        }
        #expect(!output.contains("TLS session ticket"))
    }

    /// Kinds of keys that peers' certificates have, as `openssl req -newkey` names them.
    private static let keyKinds = [
        ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
        ["ec", "-pkeyopt", "ec_paramgen_curve:P-521"], ["rsa:2048"], ["rsa:4096"],
    ]

    @Test(
        "A peer's certificate may be on P-256, P-384 or P-521, or of RSA, whichever side it is",
        arguments: keyKinds, DTLSRole.allCases)
    func certificates(key: [String], role: DTLSRole) throws {
        let peer = try OpenSSLProcess.Certificate(key: key)
        defer { peer.remove() }
        let socket = try LoopbackSocket()
        let usual = OpenSSLProcess.using(peer) + OpenSSLProcess.offering(.aeadAES128GCM)
        switch role {
        case .active:
            let port = try LoopbackSocket().port
            let server = ["s_server", "-dtls1_2", "-accept", "127.0.0.1:\(port)", "-naccept", "1", "-Verify", "1"]
            socket.peer = port
            try expectSameKeys(.active, socket, OpenSSLProcess(server + usual), peer, .aeadAES128GCM)
        case .passive:
            let client = ["s_client", "-dtls1_2", "-connect", "127.0.0.1:\(socket.port)"]
            try expectSameKeys(.passive, socket, OpenSSLProcess(client + usual), peer, .aeadAES128GCM)
        }
    }

    @Test("A client's certificate may be of Ed25519, which OpenSSL's server cannot have in DTLS 1.2")
    func ed25519() throws { try certificates(key: ["ed25519"], role: .passive) }

    @Test("A client's greeting that is too long for one datagram is understood")
    func longGreeting() throws {
        let peer = try OpenSSLProcess.Certificate(key: Self.ecdsa)
        defer { peer.remove() }
        let socket = try LoopbackSocket()
        let protocols = (0..<60).map { "a-protocol-of-number-\($0)" }.joined(separator: ",")
        let tool = try OpenSSLProcess(
            ["s_client", "-dtls1_2", "-connect", "127.0.0.1:\(socket.port)", "-mtu", "500", "-alpn", protocols]
                + OpenSSLProcess.using(peer) + OpenSSLProcess.offering(.aeadAES128GCM))
        try expectSameKeys(.passive, socket, tool, peer, .aeadAES128GCM)
        // Behind the record's 13 bytes: type 1, three bytes of length, two of number, three of the fragment's offset.
        let greetings = socket.received.filter { $0.count > 22 && $0[0] == 22 && $0[13] == 1 }
        #expect(greetings.count >= 3)
        #expect(greetings.contains { $0[19..<22] != [0, 0, 0] })
    }

    @Test("A client that has only old things, no certificate, another one than promised, or no SRTP is refused")
    func unfitClients() throws {
        let promised = try OpenSSLProcess.Certificate(key: Self.ecdsa)
        let other = try OpenSSLProcess.Certificate(key: Self.ecdsa)
        defer {
            promised.remove()
            other.remove()
        }
        let srtp = OpenSSLProcess.offering(.aeadAES128GCM)
        let usual = srtp + OpenSSLProcess.using(promised)
        let clients: [(arguments: [String], outcome: DTLSError.Code)] = [
            (usual + ["-dtls1", "-cipher", "ALL:@SECLEVEL=0"], .handshakeFailed),
            (usual + ["-dtls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"], .handshakeFailed),
            (usual + ["-dtls1_2", "-cipher", "AES128-GCM-SHA256"], .handshakeFailed),
            (usual + ["-dtls1_2", "-curves", "X448"], .handshakeFailed),
            (srtp + ["-dtls1_2"], .handshakeFailed),
            (srtp + ["-dtls1_2"] + OpenSSLProcess.using(other), .fingerprintMismatch),
            (["-dtls1_2"] + OpenSSLProcess.using(promised), .noCommonProfile),
        ]
        for client in clients {
            let said = try answer(promised, client.arguments)
            #expect(failure(said) == client.outcome, "\(client.arguments)")
        }
    }

    /// What a passive endpoint that expects `peer` says to OpenSSL's client.
    private func answer(_ peer: OpenSSLProcess.Certificate, _ arguments: [String]) throws -> [DTLSOutput] {
        let identity = try #require(Identities.first)
        var endpoint = try DTLSEndpoint(.passive, identity: identity)
        var said: [DTLSOutput] = []
        let socket = try LoopbackSocket()
        drive(&endpoint, .expect([peer.fingerprint]), socket, &said)
        drive(&endpoint, .start, socket, &said)
        let tool = try OpenSSLProcess(["s_client", "-connect", "127.0.0.1:\(socket.port)"] + arguments)
        run(&endpoint, socket, &said) { !$0.isEmpty }
        // Not waited for: it takes half a second to end.
        tool.quit()
        return said
    }

    /// Returns what the tool printed.
    @discardableResult
    private func expectSameKeys(
        _ role: DTLSRole, _ socket: LoopbackSocket, _ tool: OpenSSLProcess, _ peer: OpenSSLProcess.Certificate,
        _ suite: SRTPSuite
    ) throws -> String {
        let identity = try #require(Identities.first)
        var endpoint = try DTLSEndpoint(role, identity: identity)
        var said: [DTLSOutput] = []
        drive(&endpoint, .expect([peer.fingerprint]), socket, &said)
        drive(&endpoint, .start, socket, &said)
        run(&endpoint, socket, &said) { !$0.isEmpty }
        let agreed = try #require(keys(said))
        // The client says goodbye, whoever it is; the server ends when it hears it.
        if role == .active {
            drive(&endpoint, .close, socket, &said)
        } else {
            tool.quit()
            run(&endpoint, socket, &said) { $0.count > 1 }
            #expect(said.last == .closed)
        }
        let output = try tool.finish()
        #expect(output.contains("SRTP Extension negotiated"))
        let (active, passive) = role == .active ? (agreed.send, agreed.receive) : (agreed.receive, agreed.send)
        let sides = [active.keyAndSalt, passive.keyAndSalt]
        let material = sides.flatMap { $0.prefix(suite.keyBytes) } + sides.flatMap { $0.dropFirst(suite.keyBytes) }
        let digits = material.map { String(format: "%02X", $0) }.joined()
        #expect(output.contains("Keying material: \(digits)\n"))
        return output
    }

    private func drive(
        _ endpoint: inout DTLSEndpoint, _ input: DTLSInput, _ socket: LoopbackSocket, _ said: inout [DTLSOutput]
    ) {
        var outbox: [DTLSOutput] = []
        endpoint.handle(input, at: Self.now, into: &outbox)
        for output in outbox {
            if case .transmit(let datagram) = output { socket.send(datagram) } else { said.append(output) }
        }
    }

    /// Carries datagrams until `isDone`, or for 10 s.
    private func run(
        _ endpoint: inout DTLSEndpoint, _ socket: LoopbackSocket, _ said: inout [DTLSOutput],
        until isDone: ([DTLSOutput]) -> Bool
    ) {
        let end = Self.now.advanced(by: .seconds(10))
        while !isDone(said), Self.now < end {
            let deadline = min(endpoint.nextDeadline ?? end, end)
            if let datagram = socket.receive(within: Self.now.duration(to: deadline)) {
                drive(&endpoint, .received(datagram), socket, &said)
            } else {
                drive(&endpoint, .timerFired, socket, &said)
            }
        }
    }
}
