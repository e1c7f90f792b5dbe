import CallControl
import TestSupport
import Testing

/// Words that reports, journals and peers are told: Tests/Frozen/reasons.txt.
struct FrozenReasonTests {
    @Test("Reasons, causes and states keep their words")
    func words() throws {
        var present: Set<String> = []
        present.formUnion(CallEndReason.allCases.map { "call end: \($0.rawValue)" })
        present.formUnion(CallFailureCause.allCases.map { "failure cause: \($0.rawValue)" })
        present.formUnion(RejectReason.allCases.map { "reject reason: \($0.rawValue)" })
        present.formUnion(ConnectionState.allCases.map { "connection state: \($0.rawValue)" })
        present.formUnion(GroupChange.Kind.allCases.map { "group change: \($0.rawValue)" })
        present.formUnion([CallRecord.Direction.incoming, .outgoing].map { "direction: \($0.rawValue)" })
        present.formUnion([CallRecord.Ender.local, .remote, .neither].map { "ended by: \($0.rawValue)" })
        let differences = try FrozenList("reasons").differences(from: present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }
}
