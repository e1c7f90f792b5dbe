import BotCalls
import BotWire
import CallAgent
import CallControl
import ExchangeServer
import MediaEngine
import Monitoring
import SIP
import Synchronization
import TestSupport
import Testing

@testable import Tracing

/// Keeps the traces of devices.
private final class Traces: Sendable {
    private let kept = Mutex<[Trace]>([])

    var all: [Trace] { kept.withLock { $0 } }

    /// Has the calls of a device traced.
    func trace(_ handheld: Handheld, _ change: (inout TraceConfiguration) -> Void = { _ in }) async {
        var configuration = TraceConfiguration(url: "http://127.0.0.1:4318")
        change(&configuration)
        await handheld.device.traceCalls(
            with: CallTracer(configuration) { [self] trace in kept.withLock { $0.append(trace) } })
    }

    /// Has the exchange's part of calls traced.
    func trace(_ exchange: ExchangeServer) {
        exchange.traceCalls { [self] trace in kept.withLock { $0.append(trace) } }
    }

    /// The trace whose first span has this name, once it is there.
    func first(_ name: String) async throws -> Trace {
        try await until { all.contains { $0.spans.first?.name == name } }
        return try #require(all.first { $0.spans.first?.name == name })
    }
}

@Suite("Traces of real calls", .witnessed(slack: .seconds(1)), .timeLimit(.minutes(2)))
struct CallTracingTests {
    private static let plain = "media: { offers: plain, allow_plain_rtp: true }"
    private static let peer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    private let tone = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12))
    private let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(2))

    /// One call between two devices that flows both ways.
    private func call(_ caller: Handheld, _ callee: Handheld) async throws {
        let call = await caller.device.call("echo@localhost", audio: tone)
        _ = try await caller.flowing()
        _ = try await callee.flowing()
        await caller.device.hangUp(call)
        _ = (try await caller.ended(), try await callee.ended())
    }

    @Test("Both ends of a call are one trace, from the invite over ICE and DTLS to its end, without a name")
    func pair() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        let traces = Traces()
        await traces.trace(echo)
        await traces.trace(caller)
        try await call(caller, echo)
        let (mine, theirs) = (try await traces.first("outgoing call"), try await traces.first("incoming call"))
        #expect(mine.id == theirs.id && traces.all.count == 2)
        #expect(theirs.spans[0].parent == .remote(mine.spans[0].id) && mine.spans[0].parent == .root)
        for trace in [mine, theirs] {
            #expect(Set(trace.spans.dropFirst().map(\.name)) == ["invite", "ice", "dtls", "first sound", "talk"])
            let call = trace.spans[0]
            #expect(trace.spans.allSatisfy { call.start <= $0.start && $0.start <= $0.end && $0.end <= call.end })
            #expect(call.events.contains { $0.name == "media flows both ways" } && call.failure == nil)
            #expect(!"\(trace)".contains("caller") && !"\(trace)".contains("echo@"))
        }
        try await site.close(caller, echo)
    }

    @Test(
        "Caller, exchange and callee are one trace, in which the exchange's span lasts as long as its invite and call")
    func exchange() async throws {
        let site = try await Site { $0.traces = TraceConfiguration(url: "http://127.0.0.1:4318") }
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        let traces = Traces()
        await traces.trace(echo)
        await traces.trace(caller)
        traces.trace(site.exchange)
        try await call(caller, echo)
        let (mine, theirs) = (try await traces.first("outgoing call"), try await traces.first("incoming call"))
        let between = try await traces.first("exchange")
        #expect(mine.id == between.id && theirs.id == between.id && traces.all.count == 3)
        #expect(between.spans[0].parent == .remote(mine.spans[0].id))
        #expect(theirs.spans[0].parent == .remote(mine.spans[0].id), "the exchange passes on what the caller sends")
        #expect(between.spans.map(\.name) == ["exchange", "commit", "ringing", "call"])
        #expect(between.spans[0].start >= mine.spans[0].start && between.spans[0].end - between.spans[0].start > 0)
        #expect(Set(traces.all.flatMap(\.spans).map(\.id)).count == traces.all.flatMap(\.spans).count)
        #expect(!"\(between)".contains("caller") && !"\(between)".contains("echo"))
        try await site.close(caller, echo)
    }

    @Test("Names are in spans if the configuration asks for them; a caller without traces begins none for its callee")
    func names() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        let traces = Traces()
        await traces.trace(echo) { $0.hasNames = true }
        try await call(caller, echo)
        let span = try #require(try await traces.first("incoming call").spans.first)
        #expect(span.parent == .root && span.links.isEmpty)
        #expect(span.attributes.contains(.init("handset.peer", .text("caller"))))
        #expect(span.attributes.contains(.init("handset.user", .text("echo"))))
        try await site.close(caller, echo)
    }

    @Test("A callee that follows no caller has a trace of its own, with a link to its caller's")
    func link() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        let traces = Traces()
        await traces.trace(echo) { $0.parents = .none }
        await traces.trace(caller)
        try await call(caller, echo)
        let (mine, theirs) = (try await traces.first("outgoing call"), try await traces.first("incoming call"))
        #expect(mine.id != theirs.id && theirs.spans[0].parent == .root)
        #expect(
            theirs.spans[0].links.map(\.trace) == [mine.id] && theirs.spans[0].links.map(\.span) == [mine.spans[0].id])
        try await site.close(caller, echo)
    }

    @Test("A caller that records nothing has its callee record nothing, whose own share is all")
    func unsampled() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: answering)
        let caller = try await site.device("caller", named: "mobile")
        let traces = Traces()
        await traces.trace(echo)
        await traces.trace(caller) { $0.share = 0 }
        try await call(caller, echo)
        try await site.close(caller, echo)
        #expect(traces.all.isEmpty)
    }

    @Test("A bot's webhook and its WebSocket have the call's span, and without traces none")
    func bot() async throws {
        let site = try await Site()
        let markup = #"<Response><Connect><Stream url="ws://127.0.0.1:PORT/ws"/></Connect></Response>"#
        let bot = try await ScriptedBot(markup: markup, on: site.group) { message, line in
            if message?["event"]?.string == "start" { line.close() }
        }
        let address = try #require(WebAddress("http://127.0.0.1:\(bot.port)/hook", Set(WebAddress.Scheme.allCases)))
        let device = try await site.device("echo", named: "bot", answer: answering) {
            $0.behaviour.source = .bot(BotPlan(address: address, wire: .twilio))
        }
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: tone)
        _ = (try await caller.ended(), try await device.ended())
        #expect(bot.traces.count == 2 && bot.traces.allSatisfy { $0 == nil })
        let traces = Traces()
        await traces.trace(device)
        _ = await caller.device.call("echo", audio: tone)
        _ = (try await caller.ended(), try await device.ended())
        let trace = try await traces.first("incoming call")
        let context = TraceContext(trace: trace.id, span: trace.spans[0].id, isSampled: true)
        #expect(Array(bot.traces.dropFirst(2)) == ["\(context)", "\(context)"])
        #expect(trace.spans.contains { $0.name == "participant" })
        await bot.stop()
        try await site.close(caller, device)
    }

    @Test("Over SIP an INVITE has the header Traceparent, and a caller's is a link, or the parent if all are followed")
    func telephone() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, "answer: { mode: auto, max_calls: 4 }")
        let traces = Traces()
        await traces.trace(device)
        _ = await device.device.call("bob", audio: tone)
        let invite = try await telephone.request(.invite)
        let context = try #require(invite.headers["Traceparent"].flatMap { TraceContext($0) })
        #expect(context.isSampled)

        let linked = try await telephone.call("linked", "Traceparent: \(Self.peer)")
        try telephone.post("BYE", 2, of: linked.id)
        let first = try await traces.first("incoming call")
        #expect(first.spans[0].links.map { "\($0)" } == [Self.peer] && first.spans[0].parent == .root)
        #expect(!first.spans.contains { $0.name == "ice" || $0.name == "dtls" })

        let others = Traces()
        await others.trace(device) { $0.parents = .all }
        let followed = try await telephone.call("followed", "Traceparent: \(Self.peer)")
        try telephone.post("BYE", 2, of: followed.id)
        let second = try await others.first("incoming call")
        #expect("\(second.id)" == "4bf92f3577b34da6a3ce929d0e0e4736" && second.spans[0].links.isEmpty)
        await device.device.shutDown()
    }

    @Test("Without traces an INVITE over SIP has no header of ours")
    func untracedTelephone() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, "answer: { mode: auto, max_calls: 4 }")
        _ = await device.device.call("bob", audio: tone)
        #expect(try await telephone.request(.invite).headers["Traceparent"] == nil)
        await device.device.shutDown()
    }
}
