import Foundation
import JSON
import SignalSupport
import SignalWire
import Testing

/// docs/protocol.md is what strangers write clients from, so its examples are held to the code.
@Suite struct ProtocolDocumentTests {
    /// One fenced example: what its info string says, and its text.
    struct Example {
        var kind: String
        var name: String
        var text: String
        var line: Int

        var bytes: [UInt8] { Array(text.utf8) }
        var place: Comment { "docs/protocol.md:\(line): \(kind)=\(name)" }
    }

    private let page: String
    private let examples: [Example]

    init() throws { (page, examples) = try Self.load() }

    /// The page, and its examples.
    static func load() throws -> (page: String, examples: [Example]) {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/protocol.md"), encoding: .utf8)
        return (page, try read(page))
    }

    private static func read(_ page: String) throws -> [Example] {
        var examples: [Example] = []
        var open: Example?
        for (index, line) in page.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if var example = open {
                if line == "```" {
                    examples.append(example)
                    open = nil
                } else {
                    example.text += line + "\n"
                    open = example
                }
            } else if line.hasPrefix("```") {
                let info = line.dropFirst(3).split(separator: " ")
                let label = try #require(info.last).split(separator: "=")
                // Descriptions are read where there is an SDP module: MediaNegotiationTests.
                let isKnown = info.first == "json" || info.first == "sdp" && label.first == "offer"
                try #require(isKnown && info.count == 2 && label.count == 2, "line \(index + 1): \(line)")
                open = Example(kind: String(label[0]), name: String(label[1]), text: "", line: index + 1)
            }
        }
        try #require(open == nil)
        return examples
    }

    private func examples(_ kind: String) -> [Example] { examples.filter { $0.kind == kind } }

    /// Nothing of the example is lost when it is read and written, so that each member has its place in the code.
    private func expectKept(_ written: [UInt8], _ example: Example) throws {
        let before = try SignalCoding.decode(JSONValue.self, from: example.bytes)
        let after = try SignalCoding.decode(JSONValue.self, from: written)
        #expect(before == after, example.place)
    }

    @Test("Every example in the page is of a kind that is checked here")
    func kinds() {
        #expect(Set(examples.map(\.kind)) == ["body", "request", "result", "event", "error", "offer"])
    }

    @Test("Every method has one request and one result in the page, and the code reads each without losing a member")
    func methods() throws {
        #expect(examples("request").map(\.name) == ClientRequest.methods)
        #expect(examples("result").map(\.name) == ClientRequest.methods)
        func check<Method: RPCMethod>(_ type: Method.Type) throws {
            for example in examples("request") where example.name == Method.method {
                let message = try RPCMessage(decoding: example.bytes)
                guard case .request(let id, Method.method) = message.kind else {
                    Issue.record(example.place)
                    continue
                }
                var written = try SignalCoding.request(id: id, try message.params(type))
                if !example.text.contains("params") {
                    written = Array(String(decoding: written, as: UTF8.self).replacing(#","params":{}"#, with: "").utf8)
                }
                try expectKept(written, example)
            }
            for example in examples("result") where example.name == Method.method {
                let message = try RPCMessage(decoding: example.bytes)
                guard case .result(let id) = message.kind else {
                    Issue.record(example.place)
                    continue
                }
                try expectKept(try SignalCoding.response(id: id, try message.result(Method.Result.self)), example)
            }
        }
        try check(SessionStart.self)
        try check(SessionRenew.self)
        try check(SessionEnd.self)
        try check(DeviceRegister.self)
        try check(DeviceUnregister.self)
        try check(InviteSend.self)
        try check(InviteAccept.self)
        try check(InviteReject.self)
        try check(InviteCancel.self)
        try check(InviteModify.self)
        try check(InviteList.self)
        try check(CallSignal.self)
        try check(CallProbe.self)
        try check(CallEnd.self)
        try check(RoomJoin.self)
        try check(RoomLeave.self)
        try check(RoomSignal.self)
        try check(GroupCreate.self)
        try check(GroupJoin.self)
        try check(GroupLeave.self)
        try check(GroupDismiss.self)
        try check(GroupMembers.self)
        try check(GroupList.self)
        try check(PresenceSubscribe.self)
        try check(PresenceUnsubscribe.self)
        try check(Ping.self)
    }

    @Test("Every event has one example in the page, and the code reads each without losing a member")
    func events() throws {
        #expect(examples("event").map(\.name) == ExchangeEvent.Kind.allCases.map(\.rawValue))
        for example in examples("event") {
            let event = try RPCMessage(decoding: example.bytes).params(NumberedEvent.self)
            if case .unknown = event.event { Issue.record(example.place) }
            try expectKept(try SignalCoding.event(event), example)
        }
    }

    @Test("Every error code has one example and one row in the page, with the name that the code gives it")
    func errors() throws {
        #expect(Set(examples("error").map(\.name)) == Set(RPCErrorCode.allCases.map { "\($0.rawValue)" }))
        #expect(examples("error").count == RPCErrorCode.allCases.count)
        for example in examples("error") {
            guard case .failure(let id, let error) = try RPCMessage(decoding: example.bytes).kind else {
                Issue.record(example.place)
                continue
            }
            #expect("\(error.code)" == example.name, example.place)
            #expect(error.data?.name == error.known?.name, example.place)
            try expectKept(SignalCoding.failure(id: id, error), example)
        }
        for code in RPCErrorCode.allCases { #expect(page.contains("| \(code.rawValue) | `\(code.name)` |")) }
        for code in RESTErrorCode.allCases { #expect(page.contains("| `\(code.rawValue)` | \(code.status) |")) }
    }

    @Test("Every REST body has an example in the page, and the code reads each without losing a member")
    func bodies() throws {
        var checked = Set<String>()
        func check<Body: Codable>(_ type: Body.Type) throws {
            for example in examples("body") where example.name == "\(type)" {
                try expectKept(try SignalCoding.encode(try SignalCoding.decode(type, from: example.bytes)), example)
                checked.insert(example.name)
            }
        }
        try check(LoginRequest.self)
        try check(LoginResponse.self)
        try check(TokenRequest.self)
        try check(AnonymousLoginRequest.self)
        try check(AnonymousLoginResponse.self)
        try check(ChallengeRequest.self)
        try check(ChallengeResponse.self)
        try check(EnrollmentRequest.self)
        try check(EnrollmentResponse.self)
        try check(Identities.self)
        try check(ConnectionResources.self)
        try check(WebConfiguration.self)
        try check(RESTFailure.self)
        #expect(checked.count == 13 && checked == Set(examples("body").map(\.name)))
    }

    @Test("The limits in the page are those of the code")
    func limits() {
        for row in [
            "| A message, a REST body | \(SignalLimits.messageBytes) bytes |",
            "| A REST body without a good Bearer token | \(SignalLimits.loginBytes) bytes |",
            "| A message before `session.start` is answered | \(SignalLimits.sessionStartBytes) bytes |",
            "| Objects and arrays within each other | \(SignalLimits.nesting) |",
            "A client takes messages of \(SignalBounds.delivery.messageBytes) bytes with \(SignalBounds.delivery.nesting) levels",
            "| An event about an invite | \(SignalLimits.inviteDataBytes) of data + \(2 + SignalLimits.invitees) *n*",
            "| A page of a list | \(SignalLimits.pageBytes) of entries",
            "cancellation | \(SignalLimits.inviteDataBytes) bytes as JSON text; \(SignalLimits.streamInviteDataBytes) of an",
            "| Ids by which a user can be called | \(SignalLimits.publicIDs) |",
            "| `type` of a signal | \(SignalLimits.signalTypeBytes) bytes |",
            "| `data` of a signal, as JSON text | \(SignalLimits.signalDataBytes) bytes; "
                + "\(SignalLimits.streamSignalDataBytes) of one that the exchange sends",
            "| \(SignalLimits.nameBytes) bytes; a longer one is refused",
            "| Capabilities of a device | \(SignalLimits.capabilities) |",
            "| Users in `to` of one invite | \(SignalLimits.invitees) |",
            "| Open invites that one user has sent | \(SignalLimits.openInvites) |",
            "| Invites that one user has still to answer | \(SignalLimits.openInvites); of one inviter "
                + "\(SignalLimits.openInvitesOfPair); of all together",
            "(#who-may-have-how-many-invites-open) \(SignalLimits.openInvitesOfStrangers) |",
            "| Open invites in one group | \(SignalLimits.openInvites); of one member \(SignalLimits.openInvitesOfPair); "
                + "beyond the first of each member, all but the owner share \(SignalLimits.openInvitesBeyondFirst) |",
            "| Acquaintances of one user | \(SignalLimits.acquaintances); the one that was used longest ago goes |",
            "| Members of a group | \(SignalLimits.groupMembers) |",
            "| Groups that one user owns | \(SignalLimits.groupsOwned) |",
            "| Groups that one user is in | \(SignalLimits.groupsJoined) |",
            "past which no such owner adds it to one more | \(SignalLimits.groupsOfStrangers); it can join",
            "| Connection data of a participant | \(SignalLimits.connectionDataBytes) bytes |",
            "| Push tokens of a device | \(SignalLimits.pushTargets), of \(SignalLimits.pushTokenBytes) bytes each |",
            "| Invites that follow `device.register` | \(SignalLimits.syncBytes) bytes |",
            "| Users in the answer to `presence.subscribe` | \(SignalLimits.presenceUsers) |",
            "| `ttl` | \(Int(SignalLimits.ttlSeconds)) seconds, or 0 for no end |",
        ] { #expect(page.contains(row), "\(row)") }
    }
}
