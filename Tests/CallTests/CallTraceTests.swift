import AudioKit
import AudioPort
@testable import CallControl
import CallMedia
import CallParticipation
import Core
import ICE
import SecureTransport
import TestSupport
import Testing
import VoiceActivity

@testable import Call
@testable import Tracing

/// A call's trace in virtual time. The machine's clock began at 1 s after 1970.
private struct Driven {
    var trace: CallTrace
    var generator = SeededGenerator(seed: 5)

    init(isSampled: Bool = true, parent: TraceSpan.Parent = .root, link: TraceContext? = nil) {
        let context = TraceContext(
            trace: TraceID(using: &generator), span: SpanID(using: &generator), isSampled: isSampled)
        trace = CallTrace(context, parent: parent, link: link)
    }

    static func at(_ milliseconds: Int) -> Instant { Instant.zero.advanced(by: .milliseconds(milliseconds)) }

    mutating func take(_ input: CallSession.Input, _ milliseconds: Int) {
        trace.note(input, at: Self.at(milliseconds))
    }

    mutating func order(_ output: CallSession.Output, _ milliseconds: Int) {
        trace.note([output], at: Self.at(milliseconds))
    }

    mutating func turn(_ notice: TurnNotice, _ milliseconds: Int) {
        take(.participant(.turn(CallID(number: 1), notice, TurnSummary()), from: .bot), milliseconds)
    }

    mutating func connect(hasICE: Bool = true, hasHandshake: Bool = true, _ milliseconds: Int) throws {
        let candidates = RemoteCandidates(
            credentials: ICECredentials(using: &generator), isLite: false, candidates: [], hasEnded: true)
        let address = try #require(SocketAddress(host: "192.0.2.1", port: 5_000))
        let way: RemoteConnection.Way = hasICE ? .ice(candidates) : .direct(address)
        let remote = RemoteConnection(way, handshake: hasHandshake ? (role: .active, fingerprints: []) : nil)
        order(.engine(.connect(MediaCallID(rawValue: 1), to: remote)), milliseconds)
    }

    static func record(
        _ direction: CallRecord.Direction = .incoming, _ reason: CallEndReason = .completed,
        cause: CallFailureCause? = nil
    ) -> CallRecord {
        CallRecord(
            invite: "i1", direction: direction, peer: "+4930123456", began: at(0), answeredAfter: nil,
            establishedAfter: nil, setUpTime: nil, duration: .zero, reason: reason, endedBy: .remote, cause: cause)
    }

    mutating func spans(_ record: CallRecord = Driven.record()) throws -> [TraceSpan] {
        try #require(trace.trace(record, nil, [], epoch: -1_000_000_000, using: &generator)).spans
    }
}

extension [TraceSpan] {
    /// Name, start and end in milliseconds since the machine's clock began.
    fileprivate var times: [String] {
        map { span in
            func milliseconds(_ time: Int64) -> Int64 { (time - 1_000_000_000) / 1_000_000 }
            return "\(span.name) \(milliseconds(span.start))-\(milliseconds(span.end))"
        }
    }
}

@Suite("A call's trace")
struct CallTraceTests {
    @Test("An incoming call has spans from its invite to its end, within each other")
    func incoming() throws {
        var run = Driven()
        run.order(.event(.incoming(from: "bob")), 1)
        run.order(.participant(.summon), 2)
        run.take(.participant(.ready(CallID(number: 1)), from: .bot), 40)
        try run.connect(45)
        run.order(.event(.answered), 50)
        run.take(.engine(.pathFound), 60)
        run.take(.engine(.ready), 90)
        run.order(.event(.established(after: .milliseconds(90))), 90)
        run.take(.engine(.packetReceived), 110)
        run.take(.engine(.flowing), 130)
        run.turn(.speechBegan(at: .milliseconds(500)), 620)
        run.turn(.speechEnded(at: .milliseconds(900)), 1_300)
        run.turn(.answered(after: .milliseconds(600)), 1_600)
        run.turn(.interrupted(played: .milliseconds(250)), 1_800)
        run.order(.device(.ended(Driven.record())), 2_000)
        let spans = try run.spans()
        #expect(
            spans.times == [
                "incoming call 0-2000", "invite 0-50", "participant 2-40", "ice 45-60", "dtls 60-90",
                "first sound 50-110", "talk 90-2000", "turn 620-1600", "response 1000-1600",
            ])
        let call = spans[0]
        #expect(
            call.id == run.trace.context.span && call.kind == .server && call.parent == .root && call.failure == nil)
        #expect(call.events.map(\.name) == ["ringing", "media flows both ways", "program interrupted"])
        #expect(spans[1...6].allSatisfy { $0.parent == .own(call.id) && $0.kind == .inner })
        #expect(spans[7].parent == .own(spans[6].id) && spans[8].parent == .own(spans[7].id))
        #expect(Set(spans.map(\.id)).count == 9)
    }

    @Test("An outgoing call without an answer has its invite alone, and did not fail")
    func unanswered() throws {
        var run = Driven()
        run.take(.service(.event(.inviteSent("i1", invitees: ["bob"]))), 20)
        run.order(.device(.ended(Driven.record(.outgoing, .noAnswer))), 30_000)
        let spans = try run.spans(Driven.record(.outgoing, .noAnswer))
        #expect(spans.times == ["outgoing call 0-30000", "invite 0-30000"] && spans[0].kind == .client)
        #expect(spans[0].failure == nil && spans[0].events.map(\.name) == ["invite sent"])
    }

    @Test("A step that the call does not complete lasts until its end, and the call has failed with reason and cause")
    func failed() throws {
        var run = Driven()
        try run.connect(10)
        run.order(.device(.ended(Driven.record())), 500)
        let spans = try run.spans(Driven.record(.outgoing, .dialFailed, cause: .deviceFault))
        #expect(spans.times == ["outgoing call 0-500", "invite 0-500", "ice 10-500"])
        #expect(spans[0].failure == "\(CallEndReason.dialFailed.rawValue): \(CallFailureCause.deviceFault.rawValue)")
    }

    @Test("What a call does without has no span", arguments: [(true, false), (false, true), (false, false)])
    func transports(hasICE: Bool, hasHandshake: Bool) throws {
        var run = Driven()
        try run.connect(hasICE: hasICE, hasHandshake: hasHandshake, 10)
        run.take(.engine(.pathFound), 20)
        run.take(.engine(.ready), 30)
        run.order(.device(.ended(Driven.record())), 40)
        let expected =
            ["incoming call 0-40", "invite 0-40"] + (hasICE ? ["ice 10-20"] : []) + (hasHandshake ? ["dtls 10-30"] : [])
        #expect(try run.spans().times == expected)
    }

    @Test("A peer's span is the parent or a link")
    func peers() throws {
        let peer = try #require(TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
        var followed = Driven(parent: .remote(peer.span))
        followed.order(.device(.ended(Driven.record())), 1)
        let child = try #require(try followed.spans().first)
        #expect(child.parent == .remote(peer.span) && child.links.isEmpty)
        var linked = Driven(link: peer)
        linked.order(.device(.ended(Driven.record())), 1)
        let other = try #require(try linked.spans().first)
        #expect(other.parent == .root && other.links == [peer])
    }

    @Test("A call that is not recorded, or has not ended, has no trace")
    func unsampled() {
        var run = Driven(isSampled: false)
        run.order(.device(.ended(Driven.record())), 1)
        #expect(run.trace.trace(Driven.record(), nil, [], epoch: 0, using: &run.generator) == nil)
        var running = Driven()
        #expect(running.trace.trace(Driven.record(), nil, [], epoch: 0, using: &running.generator) == nil)
    }

    @Test("64 turns have spans, and further ones are counted; 64 interruptions are events")
    func bounded() throws {
        var run = Driven()
        run.order(.event(.established(after: .zero)), 0)
        for number in 0..<70 {
            run.turn(.speechBegan(at: .milliseconds(number * 10)), number * 10)
            run.turn(.speechEnded(at: .milliseconds(number * 10 + 5)), number * 10 + 5)
            run.turn(.answered(after: .milliseconds(2)), number * 10 + 7)
            run.turn(.interrupted(played: .milliseconds(1)), number * 10 + 8)
        }
        run.order(.device(.ended(Driven.record())), 1_000)
        let spans = try run.spans()
        #expect(
            spans.count { $0.name == "turn" } == CallTrace.mostTurns
                && spans[0].events.count == CallTrace.mostInterruptions)
        #expect(spans.count { $0.name == "response" } == 64)
        #expect(spans[0].attributes.contains(.init("handset.turns_left_out", .whole(6))))
    }

    @Test("Spans say nothing of the peer's name")
    func names() throws {
        var run = Driven()
        run.order(.device(.ended(Driven.record())), 1)
        let spans = try run.spans()
        #expect(!"\(spans)".contains("4930123456"))
        #expect(spans[0].attributes.contains(.init("handset.reason", .text("completed"))))
    }

    @Test("A session names its call in the invite, and notes what happens in it")
    func session() throws {
        var generator = SeededGenerator(seed: 1)
        let context = TraceContext(
            trace: TraceID(using: &generator), span: SpanID(using: &generator), isSampled: true)
        var session = CallSession(
            CallID(number: 1), dialling: InviteOptions(to: "bob", idempotencyKey: "k"),
            audio: AudioBehaviour(source: .silence), using: generator)
        session.trace = CallTrace(context)
        var outbox: [CallSession.Output] = []
        session.handle(.begin, at: .zero, into: &outbox)
        let negotiation = try MediaNegotiation.made(using: &generator) { $0.offersWebRTC = false }
        session.handle(.engine(.prepared(negotiation)), at: .zero, into: &outbox)
        let port = CallSession.EngineLink.port(atOneOf: [try #require(SocketAddress(host: "192.0.2.1", port: 5_000))])
        session.handle(.engine(.opened(port)), at: .zero, into: &outbox)
        let invite = outbox.compactMap { output -> InviteOptions? in
            if case .service(.invite(let options)) = output { options } else { nil }
        }
        #expect(invite.map(\.trace) == [context])
        session.handle(.user(.hangUp(because: nil)), at: Driven.at(5), into: &outbox)
        session.handle(
            .service(.event(.inviteFailed(SignalingError(.disconnected, activity: "", cause: "")))), at: Driven.at(9),
            into: &outbox)
        let record = try #require(session.record)
        #expect(session.trace?.trace(record, nil, [], epoch: 0, using: &generator)?.spans.first?.end != 0)
    }
}
