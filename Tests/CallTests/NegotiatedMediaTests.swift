import CallControl
import CallMedia
import Core
import ICE
import SDP
import SecureTransport
import TestSupport
import Testing

@testable import Call

/// One end of a call without a media engine: it is connected and started at once, and keeps what it orders.
private struct End {
    var media = NegotiatedMedia()
    var generator: SeededGenerator
    private let name: MediaCallID

    /// - Parameter isWebRTC: Whether ICE and DTLS connect the call; otherwise it has keys in its descriptions.
    init(_ seed: UInt64, at host: String, isWebRTC: Bool = false) throws {
        generator = SeededGenerator(seed: seed)
        name = MediaCallID(rawValue: seed)
        let negotiation = try MediaNegotiation.made(at: host, using: &generator) { $0.offersWebRTC = isWebRTC }
        media.begin(negotiation)
        guard isWebRTC else { return }
        media.connected(by: name, ICECredentials(using: &generator), candidates: [])
    }

    mutating func start() { media.noteStarted(as: name) }

    mutating func answerFirst(_ offer: CallDescription) throws -> CallDescription {
        _ = try media.receive(offer, reachedFrom: nil)
        let answer = try #require(try media.answer()).answer
        start()
        return answer
    }

    mutating func answer(
        _ offer: CallDescription, isInviter: Bool = false
    ) throws -> (new: NegotiatedMedia.NewAnswer?, orders: [NegotiatedMedia.Order]) {
        var outbox: [NegotiatedMedia.Order] = []
        let new = try media.answer(
            newOffer: offer, isInviter: isInviter, reachedFrom: nil, using: &generator, into: &outbox)
        return (new, outbox)
    }

    mutating func accept(_ answer: CallDescription) throws -> [NegotiatedMedia.Order] {
        var outbox: [NegotiatedMedia.Order] = []
        try media.accept(newAnswer: answer, into: &outbox)
        return outbox
    }

    mutating func hearEarly(
        _ answer: CallDescription
    ) throws -> (audio: NegotiatedAudio?, orders: [NegotiatedMedia.Order]) {
        var outbox: [NegotiatedMedia.Order] = []
        return (try media.acceptEarly(answer, into: &outbox), outbox)
    }

    mutating func restartICE() throws -> (offer: CallDescription?, orders: [NegotiatedMedia.Order]) {
        var outbox: [NegotiatedMedia.Order] = []
        return (try media.restartICE(using: &generator, into: &outbox), outbox)
    }
}

extension [NegotiatedMedia.Order] {
    /// The names of the orders.
    fileprivate var names: [String] {
        map { order in
            switch order {
            case .setDirection: "setDirection"
            case .redirect: "redirect"
            case .change: "change"
            case .rekey: "rekey"
            case .beginFlow: "beginFlow"
            case .answered: "answered"
            case .connect: "connect"
            case .restart: "restart"
            }
        }
    }
}

@Suite("What a call's media is agreed to be")
struct NegotiatedMediaTests {
    /// Two ends whose call runs.
    private static func call(isWebRTC: Bool = false) throws -> (inviter: End, invitee: End) {
        var inviter = try End(1, at: "192.0.2.1", isWebRTC: isWebRTC)
        var invitee = try End(2, at: "192.0.2.2", isWebRTC: isWebRTC)
        let answer = try invitee.answerFirst(try #require(try inviter.media.offer()))
        _ = try #require(try inviter.media.acceptFirst(answer))
        inviter.start()
        return (inviter, invitee)
    }

    @Test("A first offer needs ICE, or a handshake where keys would be read, or else a port")
    func wayOfOffer() throws {
        func way(keysAllowed: Bool = true, isWebRTC: Bool) throws -> NegotiatedMedia.Way? {
            var generator = SeededGenerator(seed: 1)
            var media = NegotiatedMedia()
            let negotiation = try MediaNegotiation.made(keysAllowed: keysAllowed, using: &generator) {
                $0.offersWebRTC = isWebRTC
            }
            media.begin(negotiation)
            return media.wayOfOffer
        }
        #expect(NegotiatedMedia().wayOfOffer == nil)
        #expect(try way(isWebRTC: true) == .ice(isControlling: true))
        #expect(try way(keysAllowed: false, isWebRTC: false) == .handshake)
        #expect(try way(isWebRTC: false) == .port)
    }

    @Test("The way of an answer follows the offer: ICE is known before it is received, a handshake or port after that")
    func wayOfAnswer() throws {
        for isWebRTC in [true, false] {
            var inviter = try End(1, at: "192.0.2.1", isWebRTC: isWebRTC)
            let offer = try #require(try inviter.media.offer())
            #expect(NegotiatedMedia.way(toReceive: offer) == (isWebRTC ? .ice(isControlling: false) : nil))
            var invitee = try End(2, at: "192.0.2.2", isWebRTC: isWebRTC)
            #expect(try invitee.media.receive(offer, reachedFrom: nil) == (isWebRTC ? nil : .port))
        }
    }

    @Test("A hold only changes the direction, and nothing is expected of the peer then")
    func hold() throws {
        var (inviter, invitee) = try Self.call()
        #expect(invitee.media.expectation == .expecting)
        let offer = try #require(try inviter.media.offerAgain()?.sdp)
        let held = offer.replacing("a=sendrecv", with: "a=inactive")
        let (new, orders) = try invitee.answer(.offer(held))
        #expect(orders.names == ["setDirection"] && new?.owesRestart == false)
        #expect(new?.answer.sdp?.contains("a=inactive") == true && invitee.media.expectation == .onHold)
    }

    @Test("Of two offers that cross, the inviter's counts, and the invitee's restart is owed once")
    func crossing() throws {
        var (inviter, invitee) = try Self.call(isWebRTC: true)
        let kept = try #require(try inviter.media.offerAgain())
        let (given, began) = try invitee.restartICE()
        #expect(began.names == ["restart"])
        // A second one waits for the answer.
        #expect(try invitee.restartICE().offer == nil)

        let (none, nothing) = try inviter.answer(try #require(given), isInviter: true)
        #expect(none == nil && nothing.isEmpty)
        let new = try #require(try invitee.answer(kept).new)
        #expect(new.owesRestart)
        _ = try inviter.accept(new.answer)

        let again = try #require(try invitee.restartICE().offer)
        let (answer, orders) = try inviter.answer(again, isInviter: true)
        #expect(orders.names == ["restart", "connect"])
        guard case .connect(_, let remote)? = orders.last else { return }
        #expect(remote.handshake == nil, "the DTLS association stays")
        #expect(try invitee.accept(try #require(answer).answer).names == ["connect"])
    }

    @Test("An offer that the peer refuses is taken back, so that an answer that comes all the same changes nothing")
    func refusedOffer() throws {
        var (inviter, invitee) = try Self.call()
        let offer = try #require(try inviter.media.offerAgain())
        let answer = try #require(try invitee.answer(offer).new).answer
        inviter.media.offerRefused()
        #expect(try inviter.accept(answer).isEmpty)
        #expect(inviter.media.expectation == .expecting)
    }

    @Test("Before media runs a new offer is not answered, and none is made")
    func notRunning() throws {
        var inviter = try End(1, at: "192.0.2.1")
        let offer = try #require(try inviter.media.offer())
        #expect(inviter.media.awaitsFirstAnswer)
        #expect(try inviter.answer(offer).new == nil)
        #expect(try inviter.media.offerAgain() == nil)
        inviter.media.offerRefused()
        #expect(inviter.media.awaitsFirstAnswer, "a first offer is not taken back")
    }

    /// A caller that hears the first of two that ring.
    private static func ringing() throws -> (caller: End, first: CallDescription, second: CallDescription) {
        var caller = try End(1, at: "192.0.2.1")
        let offer = try #require(try caller.media.offer())
        var forks = (try End(2, at: "192.0.2.2"), try End(3, at: "192.0.2.3"))
        let (first, second) = (try forks.0.answerFirst(offer), try forks.1.answerFirst(offer))
        let (audio, orders) = try caller.hearEarly(first)
        #expect(audio != nil && orders.isEmpty, "media is to be started")
        caller.start()
        return (caller, first, second)
    }

    @Test("What was found out of the first that rings is reported once it has answered, and only once")
    func earlyReports() throws {
        var (caller, first, _) = try Self.ringing()
        let kept = [
            caller.media.noteEarly(.pathFound), caller.media.noteEarly(.pathFound), caller.media.noteEarlyFailure(),
        ]
        #expect(kept == [true, true, true] && caller.media.takeEarly().isEmpty, "the call is not answered")
        var outbox: [NegotiatedMedia.Order] = []
        // The connection has failed meanwhile: it begins again.
        try caller.media.acceptAfterEarly(first, into: &outbox)
        #expect(outbox.names == ["beginFlow", "answered"] && !caller.media.isEarly)
        #expect(caller.media.noteEarly(.flowing) == false && caller.media.noteEarlyFailure() == false)

        var (other, same, _) = try Self.ringing()
        _ = other.media.noteEarly(.pathFound)
        outbox = []
        try other.media.acceptAfterEarly(same, into: &outbox)
        #expect(outbox.names == ["answered"])
        let reports = [other.media.takeEarly(), other.media.takeEarly()]
        #expect(reports == [[.pathFound], []])
    }

    @Test("Media moves to another one that rings or answers, of whose media nothing is known yet")
    func forks() throws {
        var (caller, _, second) = try Self.ringing()
        caller.media.notePacket()
        _ = caller.media.noteEarly(.flowing)
        let (audio, moved) = try caller.hearEarly(second)
        #expect(audio == nil && moved.names == ["redirect", "rekey", "beginFlow"])
        #expect(!caller.media.hasHeardPeer && caller.media.remote?.host == "192.0.2.3")
        guard case .rekey(_, _, let receive, let endsFormer) = moved[1] else { return }
        #expect(receive != nil && endsFormer)
        var outbox: [NegotiatedMedia.Order] = []
        try caller.media.acceptAfterEarly(second, into: &outbox)
        #expect(outbox.names == ["answered"] && caller.media.takeEarly().isEmpty)
    }

    @Test("If media could not be started early, it starts with the answer of the one that answers")
    func earlyStartFails() throws {
        var caller = try End(1, at: "192.0.2.1")
        let offer = try #require(try caller.media.offer())
        var (first, second) = (try End(2, at: "192.0.2.2"), try End(3, at: "192.0.2.3"))
        let early = try first.answerFirst(offer)
        #expect(try caller.hearEarly(early).audio != nil && caller.media.isEarly)
        caller.media.forgetEarly()
        #expect(!caller.media.isEarly && caller.media.awaitsFirstAnswer)
        let audio = try caller.media.acceptFirst(try second.answerFirst(offer))
        #expect(audio?.remote.address == "192.0.2.3")
    }

    @Test(
        "Sound to a caller without ICE waits for what shows that the caller is there, and of strangers for their packets"
    )
    func soundCondition() throws {
        var plain = try Self.call().invitee
        #expect(plain.media.soundCondition(takesStrangers: false, isAcknowledged: false) == .confirmed)
        #expect(plain.media.soundCondition(takesStrangers: false, isAcknowledged: true) == .none)
        #expect(plain.media.soundCondition(takesStrangers: true, isAcknowledged: true) == .heard)
        let webRTC = try Self.call(isWebRTC: true).invitee
        #expect(webRTC.media.soundCondition(takesStrangers: true, isAcknowledged: false) == .none)

        let name = plain.media.runningID
        #expect(name != nil && plain.media.reached(from: nil, takesStrangers: false) == name)
        #expect(plain.media.reached(from: "192.0.2.1", takesStrangers: true) == name)
        for host in ["192.0.2.9", "no address", nil] {
            #expect(plain.media.reached(from: host, takesStrangers: true) == nil)
        }
        plain.media.noteEnded(.empty)
        #expect(plain.media.reached(from: nil, takesStrangers: false) == nil)
    }

    @Test("Media that has ended keeps its name and its report, and is not expected to run")
    func ended() throws {
        var (inviter, _) = try Self.call()
        let name = try #require(inviter.media.runningID)
        inviter.media.noteRefused()
        #expect(inviter.media.id == nil)
        inviter.start()
        inviter.media.noteEnded(.empty)
        #expect(inviter.media.id == name && inviter.media.runningID == nil && inviter.media.report != nil)
        #expect(inviter.media.goes(by: name) && !inviter.media.goes(by: MediaCallID(rawValue: 99)))
    }
}
