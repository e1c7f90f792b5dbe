import AudioKit
import CallControl
import CallMedia
import CallParticipation
import Core
import JSON
import SIPSignaling
import TestSupport
import Testing

@testable import Call
@testable import VoiceActivity

/// Drives a session in virtual time, and keeps what it orders. The service and the media do at once what they are asked for.
private struct Driven {
    var session: CallCourse
    var now = Instant.zero
    var outputs: [CallCourse.Output] = []
    private var notFed: [CallCourse.Input] = []

    static let invite: InviteID = "i1"

    static func outgoing(
        _ source: AudioBehaviour.Source = .silence, rules: CallRules = CallRules(),
        traits: SignalingTraits = SignalingTraits(),
        inPlaceOf origin: (call: CallID, peer: UserID)? = nil
    ) -> Driven {
        Driven(
            session: CallCourse(
                CallID(number: 1), dialling: InviteOptions(to: "bob", idempotencyKey: "k"),
                audio: AudioBehaviour(source: source), rules: rules, traits: traits, inPlaceOf: origin))
    }

    static func incoming(
        _ source: AudioBehaviour.Source = .silence, rules: CallRules = CallRules(),
        traits: SignalingTraits = SignalingTraits(),
        replacing replaced: CallID? = nil
    ) -> Driven {
        let invite = ReceivedInvite(
            id: invite, inviter: "bob", invitees: ["alice"], offer: .offer(""), remaining: nil)
        return Driven(
            session: CallCourse(
                CallID(number: 1), receiving: invite, audio: AudioBehaviour(source: source), rules: rules,
                traits: traits, replacing: replaced))
    }

    init(session: CallCourse) { self.session = session }

    /// Feeds the session, and returns what it orders for that, without what follows from the driver's answers.
    @discardableResult
    mutating func feed(_ input: CallCourse.Input) -> [CallCourse.Output] {
        var outbox: [CallCourse.Output] = []
        session.handle(input, at: now, into: &outbox)
        outputs += outbox
        return outbox
    }

    mutating func wait(_ time: Duration) -> [CallCourse.Output] {
        let end = now.advanced(by: time)
        var all: [CallCourse.Output] = []
        while let deadline = session.nextDeadline, deadline <= end {
            now = max(now, deadline)
            all += feed(.timerFired)
        }
        now = end
        return all
    }

    /// Establishes an outgoing call.
    mutating func connectOutgoing() {
        feed(.begin)
        feed(.media(.report(.ready(description: .offer("")))))
        feed(.service(.event(.inviteSent(Self.invite, invitees: ["bob"]))))
        feed(
            .service(
                .event(
                    .accepted(
                        InviteAnswer(
                            invite: Self.invite, invitee: "bob", device: "d1", answer: .answer(""))))))
        feed(.media(.started(recording: nil)))
        feed(.media(.answerApplied))
        feed(.media(.report(.connected(isVerified: true))))
    }

    /// Establishes an incoming call.
    mutating func connectIncoming() {
        feed(.begin)
        feed(.user(.answer(after: .zero)))
        if session.hasParticipant { feed(.participant(.ready(session.id), from: .program)) }
        feed(.media(.started(recording: nil)))
        feed(.media(.report(.ready(description: .answer("")))))
        feed(.service(.event(.answerConfirmed)))
        feed(.media(.report(.connected(isVerified: true))))
    }

    mutating func transfer(to target: UserID) throws {
        var outbox: [CallCourse.Output] = []
        try session.transfer(to: target, at: now, into: &outbox)
        outputs += outbox
    }

    mutating func end() {
        feed(.user(.hangUp(because: .request)))
        feed(.device(.recordKept))
        feed(.media(.over))
    }
}

extension [CallCourse.Output] {
    /// What is reported of a transfer.
    fileprivate var progress: [CallTransfer.Progress] {
        events.compactMap { if case .transferProgress(_, let progress) = $0 { progress } else { nil } }
    }

    fileprivate var events: [CallEvent] { compactMap { if case .event(let event) = $0 { event } else { nil } } }
    fileprivate var notes: [CallNote] { compactMap { if case .note(let note) = $0 { note } else { nil } } }

    fileprivate var signals: [CallMessage.Kind?] {
        compactMap { if case .service(.signal(let signal)) = $0 { signal.kind } else { nil } }
    }

    fileprivate var record: CallRecord? {
        for case .device(.ended(let record)) in self { return record }
        return nil
    }

    fileprivate var areOver: Bool { contains { if case .device(.over) = $0 { true } else { false } } }

    fileprivate var sendHangUp: Bool { contains { if case .service(.hangUp) = $0 { true } else { false } } }
}

@Suite("The course of a call")
struct CallCourseTests {
    @Test("An outgoing call is placed, answered, established and hung up, and its record has all of that")
    func outgoing() throws {
        var call = Driven.outgoing()
        call.connectOutgoing()
        #expect(call.session.isEstablished && call.session.inviteID == Driven.invite)
        #expect(call.outputs.events.contains(.identified(Driven.invite)) && call.outputs.events.contains(.answered))
        _ = call.wait(.seconds(5))
        call.end()
        let record = try #require(call.outputs.record)
        #expect(record.duration == .seconds(5) && record.hangUpCause == .request && record.endedBy == .local)
        #expect(call.outputs.areOver && call.session.nextDeadline == nil)
    }

    @Test(
        "What cannot be negotiated again is noted, the call continues, and the peer learns that its offer was refused")
    func renegotiationFaults() {
        var call = Driven.outgoing()
        call.connectOutgoing()
        let refused = call.feed(.media(.offerNotTaken(fault: "a")))
        #expect(refused.notes == [.offerUnusable(why: "a")] && refused.signals == [.offerRefused])
        #expect(call.feed(.media(.offerNotTaken(fault: nil))).isEmpty, "offers that cross are settled without a word")
        let nothing = call.feed(.media(.nothingOffered(fault: "b")))
        #expect(nothing.notes == [.nothingOffered(why: "b")] && nothing.signals == [.offerRefused])
        let ours = call.feed(.media(.answerNotTaken(fault: "c"))) + call.feed(.media(.restartFailed("d")))
        #expect(ours.notes == [.answerUnusable(why: "c"), .restartFailed(why: "d")] && ours.signals.isEmpty)
        #expect(call.session.isEstablished)
    }

    @Test("A peer whose offers cannot be used fills no log: each is refused, and twenty at once are noted")
    func floodOfOffers() {
        var call = Driven.outgoing()
        call.connectOutgoing()
        var (notes, refusals) = (0, 0)
        for _ in 0..<100 {
            let outputs = call.feed(.media(.offerNotTaken(fault: "a")))
            notes += outputs.notes.count
            refusals += outputs.signals.count
        }
        #expect(notes == 20 && refusals == 100)
        _ = call.wait(.seconds(7))
        #expect(call.feed(.media(.offerNotTaken(fault: "a"))).notes.count == 1)
        #expect(call.session.isEstablished)
    }

    @Test("CALL-5: A call whose answer cannot be applied is never reported as answered")
    func answerThatDoesNotFit() throws {
        var call = Driven.outgoing()
        call.feed(.begin)
        call.feed(.media(.report(.ready(description: .offer("")))))
        call.feed(.service(.event(.inviteSent(Driven.invite, invitees: ["bob"]))))
        let answer = InviteAnswer(invite: Driven.invite, invitee: "bob", device: "d1", answer: .answer("?"))
        call.feed(.service(.event(.accepted(answer))))
        call.feed(.media(.report(.failed(MediaFailure(.descriptionUnreadable, "no answer")))))
        #expect(call.feed(.media(.answerApplied)).isEmpty)
        #expect(!call.outputs.events.contains(.answered) && call.outputs.sendHangUp)
        #expect(try #require(call.outputs.record).cause == .descriptionUnreadable)
    }

    @Test(
        "CALL-7: The end of a call is reported when its record is on disk and its media has ended, whichever is later")
    func kept() {
        var call = Driven.outgoing()
        call.connectOutgoing()
        call.feed(.user(.hangUp(because: nil)))
        let early = call.feed(.media(.over))
        #expect(!early.areOver && call.session.record != nil)
        let stop = call.feed(.device(.recordKept))
        #expect(stop.contains { if case .media(.stop) = $0 { true } else { false } } && !stop.areOver)
        #expect(call.feed(.media(.over)).areOver)
        let again = call.feed(.media(.over)) + call.feed(.device(.recordKept))
        #expect(again.isEmpty, "once")
    }

    @Test("The delay of an answer ends with a call that is declined, cancelled or answered before")
    func delay() {
        var call = Driven.incoming()
        call.feed(.begin)
        call.feed(.user(.answer(after: .seconds(3))))
        #expect(call.wait(.seconds(2)).isEmpty)
        #expect(!call.wait(.seconds(1)).isEmpty && call.session.progress == .connecting)

        var declined = Driven.incoming()
        declined.feed(.begin)
        declined.feed(.user(.answer(after: .seconds(3))))
        declined.feed(.user(.reject(.declined, cause: nil)))
        let later = declined.wait(.seconds(4))
        #expect(!later.notes.contains { if case .tooLate = $0 { true } else { false } })
    }

    @Test(
        "A call that rings and that no user takes is answered in its later part; one that is taken or declined stays as it is"
    )
    func passedOn() throws {
        var rules = CallRules()
        (rules.behaviour, rules.maximumDuration) = ("messages", .seconds(60))
        let later = CallPart(AudioBehaviour(source: .program), rules)
        func ringing() -> Driven {
            var call = Driven.incoming(.card)
            call.feed(.begin)
            call.feed(.user(.passOn(after: .seconds(20), to: later)))
            return call
        }
        func isPassedOn(_ outputs: [CallCourse.Output]) -> Bool {
            outputs.contains { if case .device(.passedOn) = $0 { true } else { false } }
        }
        var call = ringing()
        #expect(call.wait(.seconds(19)).isEmpty && call.session.usesCard && call.session.behaviour.isEmpty)
        let outputs = call.wait(.seconds(1))
        // The media learns first what it plays, then the device that the card is free, and then the participant begins.
        try #require(outputs.count >= 3)
        #expect(isPassedOn([outputs[1]]))
        #expect({ if case .media(.play(let audio)) = outputs[0] { audio == later.audio } else { false } }())
        #expect({ if case .participant(.summon) = outputs[2] { true } else { false } }())
        #expect(call.session.part == later && call.session.progress == .connecting && !call.session.usesCard)

        for request: CallCourse.UserRequest in [.answer(after: .zero), .reject(.declined, cause: nil)] {
            var other = ringing()
            other.feed(.user(request))
            #expect(!isPassedOn(other.wait(.seconds(30))) && other.session.usesCard)
        }
        var cancelled = ringing()
        cancelled.feed(.service(.event(.cancelled)))
        #expect(!isPassedOn(cancelled.wait(.seconds(30))))
    }

    @Test("A call with a participant is accepted when that is ready, and declined if it does not want it")
    func participant() {
        var call = Driven.incoming(.program)
        call.feed(.begin)
        let answer = call.feed(.user(.answer(after: .zero)))
        #expect(answer.contains { if case .participant(.summon) = $0 { true } else { false } })
        #expect(!answer.contains { if case .media(.makeAnswer) = $0 { true } else { false } })
        let ready = call.feed(.participant(.ready(call.session.id), from: .bot))
        #expect(ready.contains { if case .media(.makeAnswer) = $0 { true } else { false } })
        #expect(call.feed(.participant(.ready(call.session.id), from: .bot)).isEmpty, "once")

        var other = Driven.incoming(.program)
        other.feed(.begin)
        other.feed(.user(.answer(after: .zero)))
        let rejected = other.feed(.participant(.rejected(other.session.id, .busy, "no line"), from: .bot))
        #expect(rejected.notes == [.notAccepted(why: "no line")])
        #expect(rejected.contains { if case .service(.reject) = $0 { true } else { false } })
    }

    @Test("A participant that is ready for a call that was rejected or has ended starts no media")
    func lateParticipant() {
        for isEnded in [false, true] {
            var call = Driven.incoming(.program)
            call.feed(.begin)
            call.feed(.user(.answer(after: .zero)))
            call.feed(.user(.reject(.declined, cause: nil)))
            if isEnded { call.feed(.service(.event(.answerConfirmed))) }
            #expect(call.feed(.participant(.ready(call.session.id), from: .bot)).isEmpty)
        }
    }

    @Test("CALL-5: A call whose accept is confirmed after it was given up, or recorded as withdrawn, is hung up")
    func acceptedTooLate() {
        for event in [nil, CallMachine.ServiceEvent.cancelled, .timedOut([]), .handledElsewhere(.accepted)] {
            var call = Driven.incoming()
            call.feed(.begin)
            call.feed(.user(.answer(after: .zero)))
            call.feed(.media(.started(recording: nil)))
            call.feed(.media(.report(.ready(description: .answer("")))))
            if let event { call.feed(.service(.event(event))) }
            #expect(!call.outputs.sendHangUp)
            _ = call.wait(.seconds(30))
            #expect(call.outputs.record != nil && !call.outputs.sendHangUp)
            #expect(call.feed(.service(.acceptTaken)).sendHangUp)
        }
        var call = Driven.incoming()
        call.feed(.begin)
        call.feed(.user(.answer(after: .zero)))
        call.feed(.media(.started(recording: nil)))
        call.feed(.media(.report(.ready(description: .answer("")))))
        #expect(call.feed(.user(.hangUp(because: nil))).sendHangUp)
        #expect(!call.feed(.service(.acceptTaken)).sendHangUp, "it was sent already")
    }

    @Test("Candidates of a call that was rejected are not sent")
    func candidatesOfRejected() {
        var call = Driven.incoming()
        call.feed(.begin)
        call.feed(.user(.answer(after: .zero)))
        call.feed(.media(.candidate("1", mid: "0")))
        call.feed(.user(.reject(.declined, cause: nil)))
        #expect(call.feed(.service(.event(.answerConfirmed))).signals.isEmpty)
        #expect(call.session.record?.reason == .declined)
    }

    @Test("What is due after the end of a call is not done: at one instant, the end of a call is the last thing")
    func dueAfterTheEnd() throws {
        var rules = CallRules()
        rules.maximumDuration = .seconds(10)
        var call = Driven.incoming(rules: rules)
        call.connectIncoming()
        call.feed(.media(.quiet))
        // Nothing is done in between: the restart after 4 s, the sound and the longest duration after 10 s are due at once.
        call.now = call.now.advanced(by: .seconds(11))
        let outputs = call.feed(.timerFired)
        let end = try #require(outputs.firstIndex { if case .note(.longestDuration) = $0 { true } else { false } })
        #expect(!outputs[end...].contains { if case .media(.restartICE) = $0 { true } else { false } })
        #expect(!outputs[end...].contains { if case .media(.checkSound) = $0 { true } else { false } })
        #expect(outputs.record?.hangUpCause == .maximumDuration)
    }

    @Test("A participant that was detached asks for nothing any more, and the next one does")
    func detached() {
        var call = Driven.incoming(.program)
        call.connectIncoming()
        let id = call.session.id
        #expect(!call.feed(.participant(.press(id, keys: "1"), from: .program)).isEmpty)
        call.feed(.user(.detach))
        #expect(call.feed(.participant(.press(id, keys: "1"), from: .program)).isEmpty)
        #expect(call.feed(.participant(.done(id, failure: nil), from: .program)).isEmpty && call.session.isEstablished)
        call.feed(.user(.attached))
        #expect(call.feed(.participant(.press(id, keys: "1"), from: .program)).isEmpty, "still of the first")
        call.feed(.participant(.left(id), from: .program))
        #expect(!call.feed(.participant(.press(id, keys: "2"), from: .program)).isEmpty)
    }

    @Test("A call that has had its longest duration hears its participant out, and hangs up after that or 15 s")
    func longestDuration() throws {
        var rules = CallRules()
        rules.maximumDuration = .seconds(60)
        var call = Driven.incoming(.program, rules: rules)
        call.connectIncoming()
        let limit = call.wait(.seconds(60))
        #expect(limit.notes == [.longestDuration])
        #expect(limit.contains { if case .participant(.hearOut) = $0 { true } else { false } })
        #expect(try #require(call.wait(.seconds(15)).record).hangUpCause == .maximumDuration)
    }

    @Test("A file that ends before the call is established ends the call a quarter of a second after that")
    func shortFile() throws {
        var rules = CallRules()
        rules.hangsUpAfterFile = true
        var call = Driven.outgoing(.file(path: "/a.wav", loops: false), rules: rules)
        call.feed(.begin)
        call.feed(.media(.playbackEnded))
        call.feed(.media(.report(.ready(description: .offer("")))))
        call.feed(.service(.event(.inviteSent(Driven.invite, invitees: ["bob"]))))
        call.feed(
            .service(
                .event(
                    .accepted(
                        InviteAnswer(
                            invite: Driven.invite, invitee: "bob", device: "d1", answer: .answer(""))))
            ))
        call.feed(.media(.answerApplied))
        call.feed(.media(.report(.connected(isVerified: true))))
        #expect(call.wait(.milliseconds(249)).record == nil)
        #expect(try #require(call.wait(.milliseconds(1)).record).hangUpCause == .playbackEnded)
    }

    @Test("CALL-4: A peer that is silent on all paths gets an ICE restart, and is waited for for 25 s")
    func pathLost() throws {
        var call = Driven.incoming()
        call.connectIncoming()
        call.feed(.media(.quiet))
        func restarts(_ outputs: [CallCourse.Output]) -> Bool {
            outputs.contains { if case .media(.restartICE) = $0 { true } else { false } }
        }
        #expect(!restarts(call.wait(.milliseconds(3_999))))
        #expect(restarts(call.wait(.milliseconds(1))))
        #expect(call.feed(.media(.back)).notes == [.pathBack])
        #expect(call.wait(.seconds(60)).record == nil)
        call.feed(.media(.quiet))
        let end = try #require(call.wait(.seconds(25)).record)
        #expect(end.reason == .connectionLost)
    }

    @Test("A key that comes by media and by signaling is delivered once, and before the answer none")
    func keys() throws {
        var call = Driven.incoming(traits: .sip)
        call.feed(.begin)
        let key = try #require(CallKey("5", held: .milliseconds(100)))
        let signal = CallSignal(invite: Driven.invite, .key(key), from: "bob")
        #expect(call.feed(.peer(signal)).isEmpty)
        var other = Driven.incoming(traits: .sip)
        other.connectIncoming()
        #expect(other.feed(.peer(signal)).events == [.digit("5", heldFor: .milliseconds(100))])
        #expect(other.feed(.media(.digit("5", heldFor: .milliseconds(90)))).isEmpty)
    }

    @Test(
        "Local candidates wait until the peer can know the call, and those of the peer until the media knows the peer")
    func candidates() {
        var call = Driven.incoming()
        call.feed(.begin)
        call.feed(.user(.answer(after: .zero)))
        let candidate = CallSignal(invite: Driven.invite, .candidate(.candidate("candidate:1")), from: "bob")
        #expect(call.feed(.media(.candidate("2", mid: "0"))).isEmpty && call.feed(.peer(candidate)).isEmpty)
        let known = call.feed(.media(.peerIsKnown))
        #expect(
            known.count == 1
                && known.contains { if case .media(.add(let some)) = $0 { some.count == 1 } else { false } })
        call.feed(.media(.report(.ready(description: .answer("")))))
        #expect(call.feed(.service(.event(.answerConfirmed))).signals == [.candidate])
    }

    @Test("CALL-8: A transfer that the peer asks for before we know of the answer waits for that")
    func earlyRequest() {
        var call = Driven.incoming(traits: .sip)
        call.feed(.begin)
        call.feed(.user(.answer(after: .zero)))
        let request = CallSignal(invite: Driven.invite, .transfer(CallTransfer.Request(target: "carol")), from: "bob")
        #expect(call.feed(.peer(request)).isEmpty)
        call.feed(.media(.report(.ready(description: .answer("")))))
        let confirmed = call.feed(.service(.event(.answerConfirmed)))
        #expect(
            confirmed.contains { if case .device(.consider(let asked)) = $0 { asked.target == "carol" } else { false } }
        )
    }

    @Test("Where an accept waits for candidates they follow it at once, and are not waited for until it is confirmed")
    func candidatesOfAccept() {
        var call = Driven.incoming(traits: .sip)
        call.feed(.begin)
        call.feed(.user(.answer(after: .zero)))
        #expect(call.feed(.media(.candidate("1 1 udp 1 192.0.2.9 9 typ host", mid: "0"))).signals.isEmpty)
        #expect(call.feed(.media(.report(.ready(description: .answer(""))))).signals == [.candidate])
        #expect(call.feed(.media(.candidate(nil, mid: "0"))).signals == [.candidate])
    }

    @Test("CALL-8: A transfer of which the peer reports nothing for 180 s has failed, and another one can begin")
    func ignoredTransfer() throws {
        var call = Driven.incoming()
        call.connectIncoming()
        try call.transfer(to: "carol")
        #expect(throws: SignalingError.self) { try call.transfer(to: "dave") }
        #expect(call.wait(.seconds(170)).progress.isEmpty)
        // It rings: the time begins anew.
        let rings = CallSignal(invite: Driven.invite, .transferProgress(.ringing), from: "bob")
        #expect(call.feed(.peer(rings)).progress == [.ringing])
        #expect(call.wait(.seconds(179)).progress.isEmpty)
        #expect(call.wait(.seconds(1)).progress == [.failed])
        try call.transfer(to: "dave")
        let accepted = CallSignal(invite: Driven.invite, .transferProgress(.refused), from: "bob")
        #expect(call.feed(.peer(accepted)).progress == [.refused])
        #expect(call.wait(.seconds(300)).progress.isEmpty, "it is over")
    }

    @Test("CALL-8: Two calls of a transfer end each other as one succeeds, and each record names who took over")
    func transfer() throws {
        var old = Driven.incoming()
        old.connectIncoming()
        let admitted = old.feed(.device(.decided(CallTransfer.Request(target: "carol"), isAdmitted: true)))
        #expect(admitted.signals == [.transferProgress])
        #expect(admitted.contains { if case .device(.placeSuccessor("carol", _)) = $0 { true } else { false } })
        var new = Driven.outgoing(inPlaceOf: (call: CallID(number: 1), peer: "bob"))
        old.feed(.device(.successorPlaced(new.session.id, to: "carol")))
        #expect(!old.session.canBeTransferred, "one at a time")
        new.connectOutgoing()
        var news: [CallCourse.DeviceNotice] = []
        for case .device(.inform(CallID(number: 1), let word)) in new.outputs { news.append(word) }
        #expect(news.count == 1)
        for word in news { old.feed(.device(word)) }
        let record = try #require(old.outputs.record)
        #expect(record.transferredTo == "carol" && record.hangUpCause == .request && old.outputs.sendHangUp)
        new.end()
        #expect(try #require(new.outputs.record).transferredBy == "bob")
    }

    @Test("CALL-8: A call that an invite replaces ends with that one's answer, and knows its heir if it ends before")
    func replaced() throws {
        var old = Driven.incoming()
        old.connectIncoming()
        var new = Driven.incoming(replacing: CallID(number: 7))
        new.feed(.begin)
        var words: [CallCourse.DeviceNotice] = []
        func collect(_ outputs: [CallCourse.Output]) {
            for case .device(.inform(CallID(number: 7), let word)) in outputs { words.append(word) }
        }
        collect(new.feed(.user(.answer(after: .zero))))
        for word in words { old.feed(.device(word)) }
        var cut = old
        cut.feed(.service(.event(.hungUp(CallHangUp(invite: Driven.invite, reason: .completed, duration: .zero)))))
        #expect(try #require(cut.outputs.record).transferredTo == "bob", "the service was quicker")
        var kept = old
        var rejected = new
        let refusal = rejected.feed(.media(.report(.failed(MediaFailure(.deviceFull, "no room")))))
        for case .device(.inform(CallID(number: 7), let word)) in refusal { kept.feed(.device(word)) }
        kept.feed(.service(.event(.hungUp(CallHangUp(invite: Driven.invite, reason: .completed, duration: .zero)))))
        #expect(try #require(kept.outputs.record).transferredTo == nil, "the one that replaces it was rejected")
        words = []
        collect(new.feed(.media(.report(.ready(description: .answer(""))))))
        collect(new.feed(.service(.event(.answerConfirmed))))
        for word in words { old.feed(.device(word)) }
        #expect(try #require(old.outputs.record).transferredTo == "bob")
    }

    @Test("Signals that are none of the call's are left to its program, by the service's traits")
    func foreignSignals() {
        #expect(CallSignal(invite: Driven.invite, type: "chat", data: .null).kind == nil)
        #expect(!CallCourse.takes(.key, by: SignalingTraits()))
        #expect(CallCourse.takes(.key, by: .sip) && CallCourse.takes(.offer, by: SignalingTraits()))
    }

    @Test(
        "CALL-5: In any order of events a call ends once, is finished once, and orders nothing after that",
        arguments: UInt64(0)..<300)
    func walk(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var call =
            seed % 2 == 0
            ? Driven.outgoing(.program, rules: Self.strict)
            : Driven.incoming(.program, rules: Self.strict, traits: .sip)
        var isOver = false
        var ends = 0
        for _ in 0..<400 {
            let outputs: [CallCourse.Output]
            // An accept that is taken after all is hung up, whenever that is.
            var isTakenLate = false
            if Int.random(in: 0..<6, using: &random) == 0 {
                outputs = call.wait(.milliseconds(Int64.random(in: 0...20_000, using: &random)))
            } else {
                let input = Self.input(call.session.id, &random)
                if case .service(.acceptTaken) = input { isTakenLate = true }
                outputs = call.feed(input)
            }
            if isOver {
                #expect(
                    !outputs.areOver && outputs.record == nil && (isTakenLate || !outputs.sendHangUp), "it was over")
            }
            ends += outputs.record == nil ? 0 : 1
            isOver = isOver || outputs.areOver
        }
        call.feed(.service(.event(.disconnected)))
        call.feed(.device(.recordKept))
        call.feed(.media(.over))
        #expect(call.session.record == nil || call.outputs.record != nil)
        #expect(ends <= 1)
    }

    private static var strict: CallRules {
        var rules = CallRules()
        rules.maximumDuration = .seconds(30)
        rules.silenceTimeout = .seconds(10)
        rules.hangsUpAfterFile = true
        return rules
    }

    private static func input(_ id: CallID, _ random: inout SeededGenerator) -> CallCourse.Input {
        func signal(_ message: CallMessage) -> CallCourse.Input {
            .peer(CallSignal(invite: Driven.invite, message, from: "bob"))
        }
        guard let key = CallKey("1", held: .milliseconds(100)) else { return .timerFired }
        let all: [CallCourse.Input] = [
            .begin, .begin, .begin, .timerFired, .user(.answer(after: .zero)), .user(.answer(after: .seconds(2))),
            .user(.reject(.busy, cause: nil)), .user(.hangUp(because: .request)), .user(.sendKeys(["1"])),
            .user(.attached), .user(.detach), .user(.attachingFailed), .user(.recordingBegan(path: "/a.wav")),
            .user(.recordingStopped), .service(.event(.inviteSent(Driven.invite, invitees: ["bob"]))),
            .service(.event(.inviteSent(Driven.invite, invitees: ["bob"]))),
            .service(
                .event(
                    .accepted(InviteAnswer(invite: Driven.invite, invitee: "bob", device: "d1", answer: .answer(""))))),
            .service(
                .event(
                    .accepted(InviteAnswer(invite: Driven.invite, invitee: "bob", device: "d1", answer: .answer(""))))),
            .service(.event(.answerConfirmed)), .service(.event(.answerConfirmed)), .service(.acceptTaken),
            .service(.event(.inviteEnded)), .service(.event(.cancelled)), .service(.probed(.failed(.noAnswer))),
            .service(.probed(.answered())), .service(.probed(nil)), .service(.event(.cancelConfirmed)),
            signal(.candidate(.candidate("candidate:1"))), signal(.offer(CallDescription(.wanted))),
            signal(.offer(CallDescription(.unreadable))), signal(.answer(CallDescription(.unreadable))),
            signal(.offerRefused), signal(.earlyAnswer(CallDescription(.unreadable))), signal(.acknowledged(host: nil)),
            signal(.key(key)), signal(.transfer(CallTransfer.Request(target: "carol"))),
            signal(.transferProgress(.accepted)),
            .media(.report(.ready(description: .offer("")))), .media(.report(.pathFound)),
            .media(.report(.ready(description: .answer("")))), .media(.report(.connected(isVerified: true))),
            .media(.report(.connected(isVerified: false))), .media(.report(.flowing)), .media(.report(.lost)),
            .media(.connectionFailed(MediaFailure(.deviceFull, "test"))), .media(.started(recording: "/a.wav")),
            .media(.candidate("1", mid: "0")), .media(.candidate(nil, mid: "0")), .media(.peerIsKnown),
            .media(.answerApplied),
            .media(.answered(.answer(""), owesRestart: true)), .media(.offered(.offer(""), restartsICE: true)),
            .media(.offerNotTaken(fault: nil)), .media(.nothingOffered(fault: nil)), .media(.observed(.covered)),
            .media(.observed(.onHold)), .media(.observed(.expecting(newest: nil))), .media(.quiet), .media(.back),
            .media(.digit("1", heldFor: .milliseconds(80))), .media(.playbackEnded), .media(.over),
            .participant(.ready(id), from: .bot), .participant(.rejected(id, .busy, "why"), from: .bot),
            .participant(.failed(id, "why"), from: .program), .participant(.press(id, keys: "1"), from: .program),
            .participant(.transfer(id, to: "carol"), from: .program),
            .participant(.done(id, failure: nil), from: .program),
            .participant(.left(id), from: .program), .device(.successorConnects("carol")), .device(.successorEnded),
            .device(.replaced(by: "carol")), .device(.decided(CallTransfer.Request(target: "carol"), isAdmitted: true)),
            .device(.successorPlaced(CallID(number: 9), to: "carol")), .device(.judged("carol")), .device(.judged(nil)),
            .device(.successor(CallID(number: 9), .accepted)), .device(.recordKept),
        ]
        return all[Int.random(in: 0..<all.count, using: &random)]
    }
}
