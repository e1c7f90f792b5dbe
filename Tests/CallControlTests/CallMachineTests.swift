@testable import CallControl
import JSON
import Testing
import TestSupport
import Core

@Suite("CallMachine")
struct CallMachineTests {
    private typealias Fixtures = CallFixtures

    private func record(_ timeline: Timeline<CallMachine>) throws -> CallRecord {
        let records = timeline.outputs.compactMap { if case .ended(let record) = $0 { record } else { nil } }
        #expect(records.count == 1)
        return try #require(records.first)
    }

    @Test("CALL-1: The invite carries the offer beside the application's data, and the accept's answer is applied")
    func outgoing() {
        var timeline = Timeline(Fixtures.dialled)
        timeline.feed(.begin)
        timeline.feed(.media(.ready(description: .offer("our offer"))))
        timeline.feed(.service(.inviteSent("i1", invitees: ["bob"])))
        timeline.feed(.service(.accepted(Fixtures.accepted)))
        var sent = Fixtures.options
        sent.offer = .offer("our offer")
        #expect(sent.data == ["subject": "lunch"])
        #expect(
            timeline.outputs == [.prepareOffer, .sendInvite(sent), .applyAnswer(.answer("their answer")), .answered])
    }

    @Test("CALL-1: The accept is sent when media can be received, and not before")
    func incoming() {
        var timeline = Timeline(Fixtures.received)
        timeline.feed(.begin)
        timeline.feed(.user(.answer))
        #expect(timeline.outputs == [.ringing, .prepareAnswer(offer: .offer("their offer"))])
        timeline.advance(by: .seconds(2), firing: .timerFired)
        timeline.feed(.media(.ready(description: .answer("our answer"))))
        #expect(timeline.outputs.last == .sendAccept("i1", .call(.answer("our answer"))))
    }

    @Test(
        "CALL-2: A call is established when it can carry media, with the time since the invite was sent; sound is a fact"
    )
    func setUpTimeOutgoing() throws {
        var timeline = Timeline(Fixtures.dialled)
        timeline.feed(.begin)
        timeline.advance(by: .milliseconds(40), firing: .timerFired)
        timeline.feed(.media(.ready(description: .offer("our offer"))))
        timeline.feed(.service(.inviteSent("i1", invitees: ["bob"])))
        timeline.advance(by: .milliseconds(300), firing: .timerFired)
        timeline.feed(.service(.accepted(Fixtures.accepted)))
        timeline.advance(by: .milliseconds(25), firing: .timerFired)
        #expect(!timeline.core.isEstablished)
        #expect(timeline.feed(.media(.pathFound)).isEmpty)
        #expect(timeline.feed(.media(.connected(isVerified: true))) == [.established(after: .milliseconds(325))])
        #expect(timeline.core.isEstablished)
        timeline.advance(by: .milliseconds(3_100), firing: .timerFired)
        #expect(
            timeline.feed(.media(.flowing))
                == [.flowing(after: .milliseconds(3_425), establishedAfter: .milliseconds(325))])
        #expect(timeline.feed(.media(.flowing)).isEmpty, "reported once")
        timeline.feed(.user(.hangUp))
        let record = try record(timeline)
        #expect(record.establishedAfter == .milliseconds(325) && record.setUpTime == .milliseconds(3_425))
        #expect(record.duration == .milliseconds(3_100), "CALL-3: the duration begins when the call is established")
    }

    @Test("CALL-2: A peer that sends no sound neither delays nor ends a call", arguments: [true, false])
    func silentPeer(isOutgoing: Bool) throws {
        var timeline = Timeline(isOutgoing ? Fixtures.settingUpOutgoing : Fixtures.settingUpIncoming)
        // Without ICE the call can carry media as soon as both know that it was answered.
        #expect(timeline.feed(.media(.connected(isVerified: false))) == [.established(after: .zero)])
        timeline.advance(by: .seconds(3_600), firing: .timerFired)
        #expect(timeline.core.isEstablished && timeline.core.nextDeadline == nil)
        timeline.feed(.user(.hangUp))
        let record = try record(timeline)
        #expect(record.reason == .completed && record.duration == .seconds(3_600) && record.setUpTime == nil)
    }

    @Test("CALL-2: Media that is ready or flows before the service confirms the accept counts from the confirmation")
    func mediaOvertakesSignaling() {
        for flows in [false, true] {
            var timeline = Timeline(Fixtures.accepting)
            timeline.advance(by: .milliseconds(3), firing: .timerFired)
            #expect(timeline.feed(.media(.connected(isVerified: false))).isEmpty)
            if flows { #expect(timeline.feed(.media(.flowing)).isEmpty) }
            timeline.advance(by: .milliseconds(2), firing: .timerFired)
            let time = Duration.milliseconds(5)
            let flowing = CallMachine.Output.flowing(after: time, establishedAfter: time)
            #expect(
                timeline.feed(.service(.answerConfirmed))
                    == [.answered, .established(after: time)] + (flows ? [flowing] : []))
        }
    }

    @Test(
        "CALL-2: Where the caller acknowledges the answer, a call without ICE is established by that, and by nothing less"
    )
    func acknowledgement() throws {
        var timeline = Timeline(Fixtures.unacknowledged)
        timeline.feed(.media(.connected(isVerified: false)))
        timeline.feed(.media(.flowing))
        timeline.advance(by: .seconds(31), firing: .timerFired)
        #expect(!timeline.core.isEstablished && timeline.core.isAnswered)
        let time = Duration.seconds(31)
        #expect(
            timeline.feed(.service(.acknowledged))
                == [.established(after: time), .flowing(after: time, establishedAfter: time)])

        var connected = Timeline(Fixtures.unacknowledged)
        #expect(
            connected.feed(.media(.connected(isVerified: true))) == [.established(after: .zero)],
            "ICE or a handshake has reached the caller")

        var forgotten = Timeline(Fixtures.unacknowledged)
        forgotten.feed(.media(.connected(isVerified: false)))
        forgotten.runToQuiescence(firing: .timerFired)
        #expect(forgotten.now == Instant.zero.advanced(by: .seconds(40)))
        #expect(try record(forgotten).reason == .acceptFailed)
        #expect(try record(forgotten).error?.code == .timedOut)
    }

    @Test("CALL-2: An early acknowledgement is kept until the service confirms the accept")
    func earlyAcknowledgement() {
        var timeline = Timeline(
            CallMachine(receiving: Fixtures.invite, awaitsAcknowledgement: true).after(
                .begin, .user(.answer), .media(.ready(description: .answer("our answer")))))
        timeline.feed(.service(.acknowledged))
        timeline.feed(.media(.connected(isVerified: false)))
        #expect(timeline.feed(.service(.answerConfirmed)) == [.answered, .established(after: .zero)])
    }

    @Test("CALL-2: An offer in the accept is answered by the acknowledgement, from which a path is looked for")
    func offerInAccept() throws {
        var timeline = Timeline(
            CallMachine(receiving: Fixtures.invite, awaitsAcknowledgement: true).after(
                .begin, .user(.answer), .media(.ready(description: .offer("ours"))),
                .service(.answerConfirmed)))
        timeline.advance(by: .seconds(20), firing: .timerFired)
        #expect(timeline.core.isAnswered)
        timeline.feed(.service(.acknowledged))
        timeline.runToQuiescence(firing: .timerFired)
        #expect(try record(timeline).cause == .noPath)
        #expect(timeline.now == Instant.zero.advanced(by: .seconds(30)))
    }

    @Test("CALL-3: Hanging up sends the peer the duration, and both sides record the same")
    func hangUp() throws {
        var ours = Timeline(Fixtures.establishedOutgoing)
        ours.advance(by: .milliseconds(61_234), firing: .timerFired)
        let sent = ours.feed(.user(.hangUp))
        guard case .sendHangUp(let news)? = sent.first else {
            Issue.record("the peer is not told")
            return
        }
        #expect(news == CallHangUp(invite: "i1", reason: .completed, duration: .milliseconds(61_234)))

        var theirs = Timeline(Fixtures.establishedIncoming)
        theirs.advance(by: .milliseconds(61_500), firing: .timerFired)
        theirs.feed(.service(.hungUp(news)))
        let (here, there) = (try record(ours), try record(theirs))
        #expect(here.duration == there.duration && here.duration == .milliseconds(61_234))
        #expect(here.reason == .completed && there.reason == .completed)
        #expect(here.endedBy == .local && there.endedBy == .remote)
    }

    @Test("INV-9: A call without a decision within the device's limit is rejected, and the caller gets noAnswer")
    func ringLimit() throws {
        var timings = CallTimings()
        timings.invite.answerLimit = .seconds(20)
        for answersLate in [false, true] {
            var timeline = Timeline(CallMachine(receiving: Fixtures.invite, timings: timings))
            timeline.feed(.begin)
            timeline.advance(by: .seconds(19), firing: .timerFired)
            if answersLate { timeline.feed(.user(.answer)) }  // Its media are not ready in time.
            let before = timeline.outputs.count
            timeline.advance(by: .seconds(1), firing: .timerFired)
            let reject = CallMachine.Output.sendReject("i1", InviteRejection(.noAnswer))
            #expect(timeline.outputs.dropFirst(before) == (answersLate ? [.releaseMedia, reject] : [reject]))
            timeline.feed(.user(.answer))
            timeline.feed(.service(.answerConfirmed))
            let record = try record(timeline)
            #expect(record.reason == .noAnswer && record.endedBy == .neither)
        }
    }

    @Test("CALL-3: A duration that cannot be true is cut to what can")
    func boastfulPeer() throws {
        var timeline = Timeline(Fixtures.establishedIncoming)
        timeline.advance(by: .seconds(5), firing: .timerFired)
        timeline.feed(.service(.hungUp(Fixtures.hungUp(after: .seconds(9_999)))))
        #expect(try record(timeline).duration == .seconds(6))
    }

    @Test("CALL-5: Each way to end has its one reason")
    func reasons() throws {
        func reason(_ call: CallMachine, _ input: CallMachine.Input) throws -> CallEndReason {
            var timeline = Timeline(call)
            timeline.feed(input)
            return try record(timeline).reason
        }
        #expect(try reason(Fixtures.inviting, .service(.rejected(Fixtures.rejected(.declined)))) == .declined)
        #expect(try reason(Fixtures.inviting, .service(.rejected(Fixtures.rejected(.busy)))) == .busy)
        #expect(try reason(Fixtures.inviting, .service(.rejected(Fixtures.rejected(.failed)))) == .dialFailed)
        #expect(try reason(Fixtures.inviting, .service(.timedOut(["bob"]))) == .noAnswer)
        #expect(try reason(Fixtures.ringing, .service(.cancelled)) == .cancelled)
        #expect(try reason(Fixtures.ringing, .service(.handledElsewhere(.accepted))) == .acceptedElsewhere)
        #expect(try reason(Fixtures.ringing, .service(.handledElsewhere(.rejected))) == .declinedElsewhere)
        #expect(try reason(Fixtures.sending, .service(.inviteFailed(Fixtures.broken))) == .dialFailed)
        #expect(try reason(Fixtures.accepting, .service(.answerFailed(Fixtures.broken))) == .acceptFailed)
        #expect(try reason(Fixtures.establishedIncoming, .media(.lost)) == .connectionLost)
        #expect(try reason(Fixtures.establishedIncoming, .service(.disconnected)) == .disconnected)
        #expect(try reason(Fixtures.establishedIncoming, .media(.failed("codec"))) == .internalError)
        #expect(try reason(Fixtures.establishedOutgoing, .service(.hungUp(Fixtures.hungUp()))) == .completed)
        let names = CallEndReason.allCases.map(\.rawValue)
        let contract =
            "completed declined busy noAnswer cancelled acceptedElsewhere declinedElsewhere dialFailed acceptFailed "
            + "connectionLost disconnected internalError"
        #expect(names == contract.split(separator: " ").map(String.init))
    }

    @Test("A call that rings and whose media is known to fail is rejected with the cause, and not answered")
    func failsWhileRinging() throws {
        var timeline = Timeline(Fixtures.ringing)
        timeline.feed(.media(.failed("no card")))
        let names = timeline.outputs.map(caseName)
        #expect(names.contains("sendReject") && !names.contains("prepareAnswer"))
        timeline.feed(.service(.answerConfirmed))
        #expect(timeline.outputs.map(caseName).count { $0 == "ended" } == 1)
    }

    @Test("CALL-5: An answered call that cannot carry media fails after its time, on each side under its own name")
    func noMedia() throws {
        var outgoing = Timeline(Fixtures.settingUpOutgoing)
        outgoing.runToQuiescence(firing: .timerFired)
        var incoming = Timeline(Fixtures.settingUpIncoming)
        incoming.runToQuiescence(firing: .timerFired)
        #expect(try record(outgoing).reason == .dialFailed)
        #expect(try record(incoming).reason == .acceptFailed)
        #expect(try record(incoming).error?.code == .mediaFailed)
        #expect(incoming.now == Instant.zero.advanced(by: .seconds(10)))
        #expect(try record(incoming).cause == .noPath)
        var unsecured = Timeline(Fixtures.settingUpIncoming)
        unsecured.feed(.media(.pathFound))
        unsecured.runToQuiescence(firing: .timerFired)
        #expect(try record(unsecured).cause == .handshakeTimedOut)
    }

    @Test("CALL-5: Media that is never ready rejects the invite rather than hang")
    func hangingMedia() throws {
        var timeline = Timeline(Fixtures.preparingAnswer)
        timeline.advance(by: .seconds(6), firing: .timerFired)
        let rejection = InviteRejection(.failed, cause: .mediaTimedOut)
        #expect(timeline.outputs == [.releaseMedia, .sendReject("i1", rejection)])
        timeline.feed(.service(.answerConfirmed))
        #expect(try record(timeline).reason == .acceptFailed)
    }

    @Test(
        "CALL-5: For any inputs in any order, a call ends once, releases its media, and never hangs",
        arguments: 0..<300)
    func exactlyOneEnd(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let inputs: [CallMachine.Input] = [
            .user(.answer), .user(.reject(.declined)), .media(.ready(description: .answer("ours"))), .media(.flowing),
            .media(.pathFound), .media(.connected(isVerified: false)), .service(.acknowledged),
            .media(.failed("x")), .service(.inviteSent("i1", invitees: ["bob"])),
            .service(.accepted(Fixtures.accepted)), .service(.rejected(Fixtures.rejected(.busy))),
            .service(.answerConfirmed), .service(.cancelConfirmed), .service(.handledElsewhere(.accepted)),
            .service(.timedOut(["bob"])), .timerFired,
        ]
        var timeline = Timeline(seed.isMultiple(of: 2) ? Fixtures.dialled : Fixtures.received)
        timeline.feed(.begin)
        for _ in 0..<12 {
            timeline.feed(inputs.randomElement(using: &generator) ?? .timerFired)
            timeline.advance(by: .milliseconds(Int.random(in: 0...900, using: &generator)), firing: .timerFired)
        }
        timeline.feed(.user(.hangUp))
        timeline.runToQuiescence(firing: .timerFired)
        let names = timeline.outputs.map(caseName)
        #expect(names.count { $0 == "ended" } == 1)
        #expect(timeline.core.record != nil)
        let held = names.count { $0 == "prepareOffer" || $0 == "prepareAnswer" }
        #expect(names.count { $0 == "releaseMedia" } == held)
    }

    @Test("INV-10: Answering a call that has ended is refused with what became of it")
    func answerAfterEnd() {
        var timeline = Timeline(Fixtures.ringing)
        timeline.feed(.service(.cancelled))
        guard case .refused(let error)? = timeline.feed(.user(.answer)).last else {
            Issue.record("the late answer was not refused")
            return
        }
        #expect(error.code == .inviteCancelled)
    }

    @Test("INV-6: A cancel that crosses the accept still ends the call, and the peer is notified")
    func crossing() throws {
        var timeline = Timeline(Fixtures.withdrawing)
        timeline.feed(.service(.accepted(Fixtures.accepted)))
        #expect(caseName(timeline.outputs[0]) == "sendHangUp")
        #expect(try record(timeline).reason == .cancelled)
    }

    @Test(
        "INV-3, CALL-3: Of several who are called the first to accept gets the call, and each other one is let go by name"
    )
    func severalCalled() throws {
        let options = InviteOptions(to: ["bob", "carol", "dave"], idempotencyKey: "k1")
        var timeline = Timeline(
            CallMachine(dialling: options).after(
                .begin, .media(.ready(description: .offer("our offer"))),
                .service(.inviteSent("i1", invitees: ["bob", "carol", "dave"]))))
        func accept(_ user: UserID) -> [CallMachine.Output] {
            var answer = Fixtures.accepted
            answer.invitee = user
            return timeline.feed(.service(.accepted(answer)))
        }
        func letGo(_ user: UserID) -> CallMachine.Output {
            .sendHangUp(CallHangUp(invite: "i1", reason: .acceptedElsewhere, duration: .zero, peer: user))
        }
        #expect(timeline.core.namedPeer == nil && timeline.core.isWith("dave"))
        #expect(accept("carol").map(caseName) == ["sendCancel", "applyAnswer", "answered"])
        #expect(timeline.core.namedPeer == "carol" && !timeline.core.isWith("bob"))
        #expect(accept("bob") == [letGo("bob")])
        timeline.feed(.media(.flowing))
        #expect(accept("dave") == [letGo("dave")])
        // Who was let go has no say in the call.
        var news = Fixtures.hungUp()
        #expect(timeline.feed(.service(.hungUp(news))).isEmpty)
        news.from = "carol"
        timeline.feed(.service(.hungUp(news)))
        #expect(try record(timeline).peer == "carol")
        #expect(try record(timeline).reason == .completed)
        #expect(accept("bob") == [letGo("bob")])
    }

    @Test("CALL-3: Hanging up on one of several names that one")
    func namedHangUp() throws {
        let options = InviteOptions(to: ["bob", "carol"], idempotencyKey: "k1")
        var timeline = Timeline(
            CallMachine(dialling: options).after(
                .begin, .media(.ready(description: .offer("our offer"))),
                .service(.inviteSent("i1", invitees: ["bob", "carol"])),
                .service(.accepted(Fixtures.accepted)), .media(.connected(isVerified: false))))
        guard case .sendHangUp(let news)? = timeline.feed(.user(.hangUp)).first else {
            Issue.record("the peer is not told")
            return
        }
        #expect(news.peer == "bob" && news.reason == .completed)
    }

    @Test("CALL-1: An accept without an answer in it is hung up, not waited for")
    func emptyAnswer() throws {
        var timeline = Timeline(Fixtures.inviting)
        var empty = Fixtures.accepted
        empty.answer = nil
        timeline.feed(.service(.accepted(empty)))
        #expect(try record(timeline).reason == .dialFailed)
    }
}
