import CallBridging
import CallParticipation
import Core
import Testing

@Suite("Calls that are handed over to a person")
struct CallHandoversTests {
    private static let caller = CallID(number: 1)
    private static let person = CallID(number: 2)
    private static let other = CallID(number: 3)
    private let caller = Self.caller
    private let person = Self.person

    /// Hand-overs at a time of their own.
    private struct Desk {
        var handovers = CallHandovers()
        var now = Instant.zero

        mutating func feed(_ input: CallHandovers.Input) -> [CallHandovers.Output] {
            var outbox: [CallHandovers.Output] = []
            handovers.handle(input, at: now, into: &outbox)
            return outbox
        }

        mutating func wait(_ time: Duration) -> [CallHandovers.Output] {
            now = now.advanced(by: time)
            return feed(.timerFired)
        }
    }

    private static func request(
        accept: Character? = "1", whisper: HandoverRequest.Whisper? = .text("A bill"),
        _ role: HandoverRequest.Role = .leaves
    ) -> HandoverRequest {
        var request = HandoverRequest(to: "ben")
        (request.acceptKey, request.whisper, request.role) = (accept, whisper, role)
        return request
    }

    private static func report(
        _ state: HandoverState, by call: CallID? = person, because why: String? = nil
    ) -> CallHandovers.Output {
        .report(HandoverReport(to: "ben", state, by: call, because: why), of: caller)
    }

    private static let joining: [CallHandovers.Output] = [
        report(.accepted), report(.joined), .join(person, caller: caller, .leaves),
    ]

    private func ringing(_ request: HandoverRequest = request()) -> Desk {
        var desk = Desk()
        _ = desk.feed(.begin(caller, request))
        #expect(desk.feed(.placed(person, for: caller)).isEmpty)
        return desk
    }

    private func whispering(_ request: HandoverRequest = request()) -> Desk {
        var desk = ringing(request)
        _ = desk.feed(.answered(person))
        return desk
    }

    @Test("The person is called while the caller hears music, hears the whisper, and is joined by its key")
    func accepted() {
        var desk = Desk()
        let request = Self.request()
        #expect(
            desk.feed(.begin(caller, request)) == [
                Self.report(.asked, by: nil), .playMusic(.configured, to: caller), .place(request, for: caller),
            ])
        #expect(desk.feed(.placed(person, for: caller)).isEmpty)
        #expect(desk.feed(.rings(person)) == [Self.report(.ringing)])
        #expect(desk.feed(.answered(person)) == [Self.report(.whispering), .whisper(.text("A bill"), to: person)])
        #expect(desk.feed(.key("2", of: person)).isEmpty && desk.feed(.key("1", of: caller)).isEmpty)
        #expect(desk.feed(.key("1", of: person)) == Self.joining)
        #expect(desk.handovers.isJoined(caller) && desk.handovers.isPerson(person))
        #expect(desk.feed(.key("1", of: person)).isEmpty)
        _ = desk.feed(.heard(caller))
        #expect(
            desk.feed(.ended(person, HandoverEnd(.refused, because: "x"))) == [
                Self.report(.ended, because: "the person has hung up")
            ])
        #expect(!desk.handovers.isUnderWay(for: caller) && desk.handovers.callCount == 0)
    }

    @Test("Without a key the person is joined when the whisper has ended; without a whisper, when it answers")
    func withoutKey() {
        var desk = whispering(Self.request(accept: nil))
        #expect(desk.feed(.key("1", of: person)).isEmpty)
        #expect(desk.feed(.whispered(person)) == Self.joining)
        #expect(desk.feed(.whispered(person)).isEmpty)
        desk = ringing(Self.request(accept: nil, whisper: nil))
        #expect(desk.feed(.answered(person)) == Self.joining)
    }

    @Test("A person that does not accept in time is hung up, from the end of the whisper or from its answer")
    func late() {
        let end: [CallHandovers.Output] = [
            .stopSound(of: person), .hangUp(person), .stopSound(of: caller),
            Self.report(.noAnswer, because: "the person has answered, and did not accept in time"),
        ]
        var desk = whispering()
        #expect(desk.wait(.seconds(59)).isEmpty)
        #expect(desk.wait(.seconds(1)) == [.stopSound(of: person)])
        #expect(desk.wait(.seconds(19)).isEmpty)
        #expect(desk.wait(.seconds(1)) == end)
        #expect(desk.handovers.nextDeadline == nil)
        desk = whispering(Self.request(whisper: nil))
        #expect(desk.handovers.nextDeadline == desk.now.advanced(by: CallHandovers.acceptTime))
        #expect(desk.wait(CallHandovers.acceptTime) == end)
        // Its end is nothing new.
        #expect(desk.feed(.ended(person, HandoverEnd(.refused, because: "x"))).isEmpty)
    }

    @Test(
        "Who is busy, declines or does not answer leaves the caller with its bot, which is notified why",
        arguments: [HandoverState.busy, .refused, .noAnswer, .failed])
    func refused(_ state: HandoverState) {
        var desk = ringing()
        #expect(
            desk.feed(.ended(person, HandoverEnd(state, because: "why"))) == [
                .stopSound(of: caller), Self.report(state, because: "why"),
            ])
        #expect(!desk.handovers.isUnderWay(for: caller))
        // It can be tried again.
        #expect(desk.feed(.begin(caller, Self.request())).count == 3)
        #expect(
            desk.feed(.notPlaced(for: caller, because: "not listed")) == [
                .stopSound(of: caller), Self.report(.failed, by: nil, because: "not listed"),
            ])
    }

    @Test("What each hears before the join ends when it hears the other one, and a bot leaves then, if it is to leave")
    func heard() {
        var desk = whispering()
        #expect(desk.feed(.heard(caller)).isEmpty)
        #expect(desk.feed(.key("1", of: person)) == Self.joining)
        #expect(desk.feed(.heard(person)) == [.stopSound(of: person)])
        #expect(desk.feed(.heard(caller)) == [.stopSound(of: caller), .dismissParticipant(of: caller)])
        // Music of a hold that follows is not ended by another report.
        #expect(desk.feed(.heard(caller)).isEmpty && desk.feed(.heard(person)).isEmpty)
        desk = whispering(Self.request(.listens))
        _ = desk.feed(.key("1", of: person))
        #expect(desk.feed(.heard(caller)) == [.stopSound(of: caller)])
    }

    @Test("A caller whose person hangs up before it is heard hears no more music")
    func neverHeard() {
        var desk = whispering()
        _ = desk.feed(.key("1", of: person))
        #expect(
            desk.feed(.ended(person, HandoverEnd(.refused, because: "x"))) == [
                .stopSound(of: caller), Self.report(.ended, because: "the person has hung up"),
            ])
        #expect(desk.feed(.heard(caller)).isEmpty)
    }

    @Test("A person who hangs up in the whisper has refused")
    func hangsUpInWhisper() {
        var desk = whispering()
        let end = HandoverEnd(.refused, because: "the person has hung up before it accepted")
        #expect(desk.feed(.ended(person, end)) == [.stopSound(of: caller), Self.report(.refused, because: end.reason)])
        #expect(desk.feed(.key("1", of: person)).isEmpty)
    }

    @Test(
        "Whichever is first counts: a caller that hangs up as the person accepts, and a person that accepts as it does")
    func race() {
        let hangsUp = CallHandovers.Input.ended(caller, HandoverEnd(.refused, because: "x"))
        var desk = whispering()
        #expect(
            desk.feed(hangsUp) == [
                .stopSound(of: person), .hangUp(person), .stopSound(of: caller),
                Self.report(.gone, because: "the caller has hung up"),
            ])
        #expect(desk.feed(.key("1", of: person)).isEmpty)
        desk = whispering()
        #expect(desk.feed(.key("1", of: person)) == Self.joining)
        // The join hangs up the person.
        #expect(
            desk.feed(hangsUp) == [.stopSound(of: caller), Self.report(.ended, because: "the caller has hung up")])
        #expect(desk.feed(.ended(person, HandoverEnd(.refused, because: "x"))).isEmpty)
        desk = Desk()
        _ = desk.feed(.begin(caller, Self.request()))
        _ = desk.feed(hangsUp)
        #expect(desk.feed(.placed(person, for: caller)) == [.hangUp(person)])
    }

    @Test(
        "A hand-over that is taken back ends the call with the person, and a second one of the same call does nothing")
    func cancelled() {
        var desk = ringing()
        #expect(desk.feed(.begin(caller, Self.request())).isEmpty)
        #expect(
            desk.feed(.cancel(caller, because: "why")) == [
                .stopSound(of: person), .hangUp(person), .stopSound(of: caller),
                Self.report(.cancelled, because: "why"),
            ])
        #expect(desk.feed(.cancel(caller, because: "why")).isEmpty)
        desk = whispering()
        _ = desk.feed(.key("1", of: person))
        _ = desk.feed(.heard(caller))
        #expect(
            desk.feed(.cancel(caller, because: "parted")) == [
                .stopSound(of: person), .hangUp(person), Self.report(.ended, because: "parted"),
            ])
    }

    @Test("A call that takes the place of the person, or of the caller, has its part in the join")
    func replaced() {
        var desk = whispering()
        _ = desk.feed(.key("1", of: person))
        #expect(desk.feed(.replaced(person, by: Self.other)).isEmpty)
        #expect(desk.handovers.isPerson(Self.other) && !desk.handovers.isPerson(person))
        #expect(desk.feed(.ended(person, HandoverEnd(.refused, because: "x"))).isEmpty)
        #expect(desk.feed(.heard(person)).isEmpty && desk.feed(.heard(Self.other)) == [.stopSound(of: Self.other)])
        _ = desk.feed(.heard(caller))
        #expect(desk.feed(.ended(Self.other, HandoverEnd(.refused, because: "x"))).count == 1)
        desk = whispering()
        _ = desk.feed(.key("1", of: person))
        _ = desk.feed(.replaced(caller, by: Self.other))
        #expect(desk.handovers.isJoined(Self.other))
        #expect(desk.feed(.heard(Self.other)) == [.stopSound(of: Self.other), .dismissParticipant(of: Self.other)])
        #expect(desk.feed(.ended(caller, HandoverEnd(.refused, because: "x"))).isEmpty)
    }
}
