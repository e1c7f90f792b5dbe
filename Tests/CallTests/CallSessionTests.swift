import AudioKit
import CallControl
import CallMedia
import CallParticipation
import Core
import ICE
import SDP
import TestSupport
import Testing

@testable import Call

/// A session whose media engine does at once what it is asked for, unless it is to fail.
private struct Driven {
    var session: CallSession
    var outputs: [CallSession.Output] = []
    /// What every link that is to be opened fails with.
    var linkFailure: MediaFailure?
    /// What every change while media runs fails with.
    var changeFailure: MediaFailure?
    private let host: String
    private let isWebRTC: Bool
    private var generator: SeededGenerator

    static let invite: InviteID = "i1"

    init(dialling isWebRTC: Bool) {
        self.isWebRTC = isWebRTC
        host = "192.0.2.1"
        generator = SeededGenerator(seed: 1)
        session = CallSession(
            CallID(number: 1), dialling: InviteOptions(to: "bob", idempotencyKey: "k"),
            audio: AudioBehaviour(source: .silence), using: generator)
    }

    init(receiving offer: CallDescription, _ isWebRTC: Bool) {
        self.isWebRTC = isWebRTC
        host = "192.0.2.2"
        generator = SeededGenerator(seed: 2)
        let received = ReceivedInvite(
            id: Self.invite, inviter: "alice", invitees: ["bob"], offer: offer, remaining: nil)
        session = CallSession(
            CallID(number: 2), receiving: received, audio: AudioBehaviour(source: .silence), using: generator)
    }

    mutating func feed(_ input: CallSession.Input) throws {
        var outbox: [CallSession.Output] = []
        session.handle(input, at: .zero, into: &outbox)
        for output in outbox {
            outputs.append(output)
            if let report = try report(on: output) { try feed(.engine(report)) }
        }
    }

    private mutating func report(on output: CallSession.Output) throws -> CallSession.EngineReport? {
        let name = MediaCallID(rawValue: session.id.number)
        switch output {
        case .media(.prepare):
            return .prepared(
                try MediaNegotiation.made(at: host, using: &generator) { [isWebRTC] in $0.offersWebRTC = isWebRTC })
        case .media(.start): return .started(name, isRecorded: false)
        case .engine(.open(let link)):
            if let linkFailure { return .failed(linkFailure) }
            guard case .ice = link else {
                return .opened(.port(atOneOf: [try #require(SocketAddress(host: host, port: 5_000))]))
            }
            return .opened(.ice(name, ICECredentials(using: &generator), candidates: []))
        case .engine(.findSource): return .source(nil)
        case .engine(.change): return .changed(changeFailure)
        default: return nil
        }
    }

    /// Everything that was ordered of media and engine, by name.
    var orders: [String] {
        outputs.compactMap { output in
            switch output {
            case .media(.prepare): "prepare"
            case .media(.start): "start"
            case .engine(.open(let link)): "open \(link)"
            case .engine(.change): "change"
            case .engine(.connect): "connect"
            case .engine(.closePort): "closePort"
            case .engine(.stop): "stop"
            default: nil
            }
        }
    }

    var offer: CallDescription? {
        for case .service(.invite(let options)) in outputs { return options.offer }
        return nil
    }

    var answer: CallDescription? {
        for case .service(.accept(_, .call(let answer))) in outputs { return answer }
        return nil
    }

    var signals: [CallMessage] {
        outputs.compactMap { if case .service(.signal(let signal)) = $0 { signal.message } else { nil } }
    }

    var notes: [CallNote] { outputs.compactMap { if case .note(let note) = $0 { note } else { nil } } }

    var record: CallRecord? {
        for case .device(.ended(let record)) in outputs { return record }
        return nil
    }

    /// Sets a call up between two ends.
    static func pair(isWebRTC: Bool) throws -> (caller: Driven, callee: Driven) {
        var caller = Driven(dialling: isWebRTC)
        try caller.feed(.begin)
        var callee = Driven(receiving: try #require(caller.offer), isWebRTC)
        try callee.feed(.begin)
        try callee.feed(.user(.answer(after: .zero)))
        try callee.feed(.service(.event(.answerConfirmed)))
        try caller.feed(.service(.event(.inviteSent(invite, invitees: ["bob"]))))
        let described: CallDescription = try #require(callee.answer)
        let answer = InviteAnswer(invite: invite, invitee: "bob", device: "d1", answer: described)
        try caller.feed(.service(.event(.accepted(answer))))
        return (caller, callee)
    }
}

@Suite("A call's session")
struct CallSessionTests {
    @Test("Each end prepares, opens what connects the call, and starts its stream once both descriptions are known")
    func setUp() throws {
        let (caller, callee) = try Driven.pair(isWebRTC: false)
        #expect(caller.orders == ["prepare", "open port", "start"] && callee.orders == caller.orders)
        #expect(caller.session.runningStream?.rawValue == 1 && callee.session.runningStream?.rawValue == 2)
    }

    @Test("A call with ICE gives its connection what was agreed once the stream runs")
    func ice() throws {
        let (caller, callee) = try Driven.pair(isWebRTC: true)
        #expect(caller.orders == ["prepare", "open ice(isControlling: true)", "start", "connect"])
        #expect(callee.orders == ["prepare", "open ice(isControlling: false)", "start", "connect"])
    }

    @Test("A hold changes the engine's stream before it is answered, and only its direction")
    func hold() throws {
        let (caller, answering) = try Driven.pair(isWebRTC: false)
        var callee = answering
        let held = try #require(caller.offer?.sdp).replacing("a=sendrecv", with: "a=inactive")
        try callee.feed(.peer(CallSignal(invite: Driven.invite, .offer(.offer(held)), from: "alice")))
        #expect(callee.orders.last == "change")
        guard case .answer(let answer)? = callee.signals.last else {
            Issue.record("not answered")
            return
        }
        #expect(answer.sdp?.contains("a=inactive") == true)
    }

    @Test("A change that the engine cannot make is refused to the peer, and the call continues")
    func changeFails() throws {
        let (caller, answering) = try Driven.pair(isWebRTC: false)
        var callee = answering
        callee.changeFailure = MediaFailure(.deviceFault, "no memory")
        let held = try #require(caller.offer?.sdp).replacing("a=sendrecv", with: "a=inactive")
        try callee.feed(.peer(CallSignal(invite: Driven.invite, .offer(.offer(held)), from: "alice")))
        #expect(callee.notes.last == .offerUnusable(why: "no memory") && callee.record == nil)
        guard case .offerRefused? = callee.signals.last else {
            Issue.record("not refused")
            return
        }
    }

    @Test("A call whose link cannot be opened fails with the reason for that, and has no invite")
    func linkFails() throws {
        var caller = Driven(dialling: true)
        caller.linkFailure = MediaFailure(.deviceFull, "no port")
        try caller.feed(.begin)
        #expect(caller.record?.cause == .deviceFull && caller.offer == nil)
        #expect(caller.orders == ["prepare", "open ice(isControlling: true)", "closePort"])
    }

    @Test("An answer that cannot be used ends the call, and its connection is stopped")
    func unusableAnswer() throws {
        var caller = Driven(dialling: true)
        try caller.feed(.begin)
        try caller.feed(.service(.event(.inviteSent(Driven.invite, invitees: ["bob"]))))
        let answer = InviteAnswer(invite: Driven.invite, invitee: "bob", device: "d1", answer: .answer("?"))
        try caller.feed(.service(.event(.accepted(answer))))
        #expect(caller.record?.cause == .descriptionUnreadable)
        #expect(caller.orders.suffix(2) == ["closePort", "stop"] && caller.session.stream == nil)
    }

    @Test("The media's report is there when the stream has ended")
    func report() throws {
        var caller = try Driven.pair(isWebRTC: false).caller
        try caller.feed(.user(.hangUp(because: .request)))
        #expect(caller.orders.last == "stop" && caller.session.mediaReport == nil)
        try caller.feed(.engine(.ended(.empty)))
        #expect(caller.session.mediaReport != nil && caller.session.runningStream == nil)
    }
}
