import Foundation
import SecureTransport
import Testing
import Timekeeping

extension DTLSRealTimeTests {
    @Test("OpenSSL's own server, with an RSA certificate, exports the keys that we have", arguments: SRTPSuite.allCases)
    func openSSLServer(suite: SRTPSuite) throws {
        let peer = try OpenSSLProcess.Certificate(key: ["rsa:2048"])
        defer { peer.remove() }
        let socket = try LoopbackSocket()
        let port = try LoopbackSocket().port
        let tool = try OpenSSLProcess(
            ["s_server", "-accept", "127.0.0.1:\(port)", "-naccept", "1", "-Verify", "1"], peer, suite)
        socket.peer = port
        try expectSameKeys(.active, socket, tool, peer, suite)
    }

    @Test(
        "OpenSSL's own client, with an ECDSA certificate, exports the keys that we have", arguments: SRTPSuite.allCases)
    func openSSLClient(suite: SRTPSuite) throws {
        let peer = try OpenSSLProcess.Certificate(key: ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
        defer { peer.remove() }
        let socket = try LoopbackSocket()
        let tool = try OpenSSLProcess(["s_client", "-connect", "127.0.0.1:\(socket.port)"], peer, suite)
        try expectSameKeys(.passive, socket, tool, peer, suite)
    }

    private func expectSameKeys(
        _ role: DTLSRole, _ socket: LoopbackSocket, _ tool: OpenSSLProcess, _ peer: OpenSSLProcess.Certificate,
        _ suite: SRTPSuite
    ) throws {
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
