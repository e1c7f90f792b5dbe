import JSON
import SignalWire
import TestSupport
import Testing

/// What is on the signaling wire, as the code writes it.
private struct WireNames {
    private(set) var present: Set<String> = []

    /// The members of every example of this kind, read and written by the code.
    private mutating func collect(
        _ examples: [ProtocolDocumentTests.Example], named name: String, as prefix: String,
        member: String, _ write: (ProtocolDocumentTests.Example) throws -> [UInt8]
    ) throws {
        var members = JSONMembers()
        for example in examples where example.name == name { try members.take(try write(example)) }
        present.formUnion(members.lines().filter { $0.hasPrefix(member) }.map { "\(prefix) \($0)" })
    }

    private mutating func collect<Method: RPCMethod>(
        _ type: Method.Type, _ examples: [ProtocolDocumentTests.Example]
    ) throws {
        present.insert("method \(Method.method)")
        let requests = examples.filter { $0.kind == "request" }
        try collect(requests, named: Method.method, as: "request \(Method.method)", member: "params") {
            try SignalCoding.request(id: .number(1), try RPCMessage(decoding: $0.bytes).params(type))
        }
        let results = examples.filter { $0.kind == "result" }
        try collect(results, named: Method.method, as: "result \(Method.method)", member: "result") {
            try SignalCoding.response(id: .number(1), try RPCMessage(decoding: $0.bytes).result(Method.Result.self))
        }
    }

    private mutating func collect<Body: Codable>(
        body type: Body.Type, _ examples: [ProtocolDocumentTests.Example]
    ) throws {
        let bodies = examples.filter { $0.kind == "body" }
        try collect(bodies, named: "\(type)", as: "body \(type)", member: "") {
            try SignalCoding.encode(try SignalCoding.decode(type, from: $0.bytes))
        }
    }

    init(_ examples: [ProtocolDocumentTests.Example]) throws {
        try collect(SessionStart.self, examples)
        try collect(SessionRenew.self, examples)
        try collect(SessionEnd.self, examples)
        try collect(DeviceRegister.self, examples)
        try collect(DeviceUnregister.self, examples)
        try collect(InviteSend.self, examples)
        try collect(InviteAccept.self, examples)
        try collect(InviteReject.self, examples)
        try collect(InviteCancel.self, examples)
        try collect(InviteModify.self, examples)
        try collect(InviteList.self, examples)
        try collect(CallSignal.self, examples)
        try collect(CallProbe.self, examples)
        try collect(CallEnd.self, examples)
        try collect(RoomJoin.self, examples)
        try collect(RoomLeave.self, examples)
        try collect(RoomSignal.self, examples)
        try collect(GroupCreate.self, examples)
        try collect(GroupJoin.self, examples)
        try collect(GroupLeave.self, examples)
        try collect(GroupDismiss.self, examples)
        try collect(GroupMembers.self, examples)
        try collect(GroupList.self, examples)
        try collect(PresenceSubscribe.self, examples)
        try collect(PresenceUnsubscribe.self, examples)
        try collect(Ping.self, examples)
        for method in ClientRequest.methods { present.insert("method \(method)") }

        let events = examples.filter { $0.kind == "event" }
        for kind in ExchangeEvent.Kind.allCases {
            present.insert("event \(kind.rawValue)")
            try collect(events, named: kind.rawValue, as: "event \(kind.rawValue)", member: "params") {
                try SignalCoding.event(try RPCMessage(decoding: $0.bytes).params(NumberedEvent.self))
            }
        }
        var errors = JSONMembers()
        for code in RPCErrorCode.allCases {
            present.insert("error \(code.rawValue) \(code.name)")
            try errors.take(SignalCoding.failure(id: .number(1), RPCError(code, "Why.", limit: 1)))
        }
        present.formUnion(errors.lines("error "))
        for code in RESTErrorCode.allCases { present.insert("REST error \(code.status) \(code.rawValue)") }

        try collect(body: LoginRequest.self, examples)
        try collect(body: LoginResponse.self, examples)
        try collect(body: TokenRequest.self, examples)
        try collect(body: AnonymousLoginRequest.self, examples)
        try collect(body: AnonymousLoginResponse.self, examples)
        try collect(body: ChallengeRequest.self, examples)
        try collect(body: ChallengeResponse.self, examples)
        try collect(body: EnrollmentRequest.self, examples)
        try collect(body: EnrollmentResponse.self, examples)
        try collect(body: Identities.self, examples)
        try collect(body: ConnectionResources.self, examples)
        try collect(body: WebConfiguration.self, examples)
        try collect(body: RESTFailure.self, examples)

        for role in [RoomRole.publisher, .subscriber, .moderator] { present.insert("role \(role.rawValue)") }
        for action in [InviteHandled.Action.accepted, .rejected] { present.insert("handled \(action.rawValue)") }
        for change in [GroupChanged.Change.created, .joined, .left, .dismissed] {
            present.insert("group change \(change.rawValue)")
        }
        for start in [DeviceRegister.Start.cold, .warm] { present.insert("device start \(start.rawValue)") }
    }
}

/// What is on the signaling wire stays there: Tests/Frozen/signaling.txt.
struct FrozenWireTests {
    @Test("Methods, events, errors and their members keep the names and numbers that clients know")
    func names() throws {
        let names = try WireNames(try ProtocolDocumentTests.load().examples)
        let differences = try FrozenList("signaling").differences(from: names.present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }
}
