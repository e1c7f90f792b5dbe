@testable import ExchangeCore
import TestSupport
import Testing

/// Why a WebSocket is closed, as clients are told: Tests/Frozen/close-codes.txt.
struct FrozenCloseCodeTests {
    @Test("Each reason to close a connection keeps its code")
    func codes() throws {
        let reasons: [(String, CloseReason)] = [
            ("going down", .goingDown), ("policy", .policy("why")), ("protocol error", .protocolError),
            ("too big", .tooBig), ("token rejected", .tokenRejected), ("token expired", .tokenExpired),
            ("logged out", .loggedOut), ("not kept", .notKept),
        ]
        let present = Set(reasons.map { "\($0.1.code) \($0.0)" })
        let differences = try FrozenList("close-codes").differences(from: present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }
}
