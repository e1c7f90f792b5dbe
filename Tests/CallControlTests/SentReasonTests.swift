@testable import CallControl
import Foundation
import Testing
import Core

/// Which of the protocol's reasons a call's machine sends, against the page that strangers write clients from.
@Suite("Reasons that devices send")
struct SentReasonTests {
    private typealias Fixtures = CallFixtures

    /// The reasons in docs/protocol.md's table, by the method that they are sent with.
    private static func documented() throws -> [String: Set<String>] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/protocol.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "\n## Reasons that are sent\n").dropFirst().first)
        var reasons: [String: Set<String>] = [:]
        var method = ""
        for line in section.components(separatedBy: "\n## ")[0].split(separator: "\n") where line.hasPrefix("| ") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: [" ", "`"]) }
            if !cells[0].isEmpty { method = cells[0] }
            reasons[method, default: []].insert(cells[1])
        }
        return reasons
    }

    private static let calls: [CallMachine] = {
        let options = InviteOptions(to: ["bob", "carol"], idempotencyKey: "k2")
        let several = CallMachine(dialling: options).after(.begin, .media(.ready(description: .offer("our offer"))))
        let inviting = several.after(.service(.inviteSent("i1", invitees: ["bob", "carol"])))
        return CallTableTests.allStates.map(\.core) + [
            several, inviting, inviting.after(.service(.accepted(Fixtures.accepted))),
        ]
    }()

    private static let inputs: [CallMachine.Input] =
        CallTableTests.allInputs.map(\.input)
        + RejectReason.allCases.map { .user(.reject($0)) }
        + [
            .service(
                .accepted(
                    InviteAnswer(invite: "i1", invitee: "carol", device: "d3", answer: .answer("another answer"))))
        ]

    @Test("A call's machine sends the reasons that the protocol's page lists, and no others")
    func sentReasons() throws {
        var sent: [String: Set<String>] = ["call.end": [], "invite.cancel": [], "invite.reject": []]
        let end = Instant.zero.advanced(by: .seconds(3_600))
        for call in Self.calls {
            for first in Self.inputs {
                for second in Self.inputs {
                    var core = call
                    var outbox: [CallMachine.Output] = []
                    core.handle(first, at: .zero, into: &outbox)
                    core.handle(second, at: end, into: &outbox)
                    for output in outbox {
                        switch output {
                        case .sendHangUp(let news): sent["call.end"]?.insert(news.reason.rawValue)
                        case .sendCancel(_, .call(let reason)): sent["invite.cancel"]?.insert(reason.rawValue)
                        case .sendCancel(_, .application): sent["invite.cancel"]?.insert("none")
                        case .sendReject(_, let rejection): sent["invite.reject"]?.insert(rejection.reason.rawValue)
                        default: break
                        }
                    }
                }
            }
        }
        let page = try Self.documented()
        for (method, reasons) in sent { #expect(page[method] == reasons, "\(method)") }
    }
}
