import CallControl
import Realtime
import Glibc
import Core
import SecureTransport

/// Places `count` calls, leaves their media to loadgen, and hangs up when standard input closes.
func hold(_ count: Int, _ suite: SRTPSuite, _ caller: Caller) async throws {
    let lines = try await place(count, suite, caller)
    // The sockets are closed by now, so that loadgen can open them; nobody else is likely to get their ports.
    let begun = ContinuousClock.now
    for line in lines.map(\.text) + ["go"] { print(line) }
    fflush(nil)

    while readLine() != nil {}
    for line in lines { try await caller.hangUp(line.invite, after: begun.duration(to: .now)) }
}

struct CallLine {
    let invite: InviteID
    let text: String

    init(_ invite: InviteID, _ end: LocalEnd, _ remote: RemoteEnd) {
        self.invite = invite
        let fields = [
            "call", remote.address.host, "\(remote.address.port)", "\(end.socket.localAddress.port)", "\(end.ssrc)",
            "\(LocalEnd.payloadType)", end.key.suite.rawValue, end.key.base64, remote.key.base64,
        ]
        text = fields.joined(separator: " ")
    }
}

private func place(_ count: Int, _ suite: SRTPSuite, _ caller: Caller) async throws -> [CallLine] {
    // All sockets stay open until all calls stand: a closed one's port could be given out again.
    var ends: [LocalEnd] = []
    var lines: [CallLine] = []
    for _ in 0..<count {
        let end = try LocalEnd(suite)
        let (invite, remote) = try await caller.place(end)
        ends.append(end)
        lines.append(CallLine(invite, end, remote))
    }
    return withExtendedLifetime(ends) { lines }
}
