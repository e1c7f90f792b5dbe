import SDP
import Testing

@Suite("Offers while a call lasts")
struct RenegotiationTests {
    private func call() throws -> (us: OfferAnswer, them: OfferAnswer) {
        var us = OfferAnswer(Sides.media())
        var them = OfferAnswer(Sides.peer())
        try Sides.exchange(&us, &them)
        return (us, them)
    }

    @Test("Two of us agree on all that browsers agree on, each from its side")
    func bothEnds() throws {
        var us = OfferAnswer(Sides.media { $0.stream = MediaStreamName(stream: "kitchen", track: nil) })
        var them = OfferAnswer(Sides.peer())
        let (offer, answer, ours, theirs) = try Sides.exchange(&us, &them)
        #expect(offer.media[0].setup == "actpass" && answer.media[0].setup == "active")
        #expect(ours.keying == .dtls(remote: [Sides.theirFingerprint], role: .passive))
        #expect(theirs.keying == .dtls(remote: [Sides.ourFingerprint], role: .active))
        #expect(ours.ice?.isControlling == true && theirs.ice?.isControlling == false)
        #expect(ours.ice?.remote.usernameFragment == "themFrag" && theirs.ice?.remote.usernameFragment == "usFrag")
        #expect(theirs.ice?.remote.options == ["trickle", "ice2"])
        #expect(theirs.remoteStreams == [MediaStreamName(stream: "kitchen", track: "us")])
        for audio in [ours, theirs] {
            #expect(audio.redundancy == PayloadTypes(send: 63, receive: 63))
            #expect(audio.telephoneEvents.map(\.remoteEvents) == ["0-16", "0-16"])
            #expect(audio.headerExtensions.map(\.identifier) == [1, 2, 3, 4])
            #expect(audio.mixesHeaderExtensionForms && audio.usesReducedSizeRTCP)
            #expect(audio.feedback == [.transportWide])
            #expect(audio.mid == "0")
        }
        #expect(us.agreed == ours && us.state == .stable)
    }

    @Test("After the peer's offer with another number for Opus our own is known, too, unless something else has it")
    func ownNumber() throws {
        var (us, them) = try call()
        func offered(_ number: Int, _ change: (String) -> String = { $0 }) throws -> NegotiatedAudio {
            let text = try them.makeOffer().serialized()
            them.rollback()
            let renumbered = text.replacing("111 ", with: "\(number) ").replacing(
                "111/111", with: "\(number)/\(number)"
            )
            .replacing(" 111\r\n", with: " \(number)\r\n")
            return try us.makeAnswer(to: try SessionDescription(parsing: change(renumbered))).audio
        }
        #expect(us.agreed?.ownReceivePayloadType == nil && us.agreed?.receivePayloadType == 111)
        for number in [107, 108] {
            let audio = try offered(number)
            #expect(audio.receivePayloadType == UInt8(number) && audio.sendPayloadType == UInt8(number))
            #expect(audio.ownReceivePayloadType == 111)
        }
        let taken = try offered(107) { $0.replacing("110 ", with: "111 ").replacing(" 110\r\n", with: " 111\r\n") }
        #expect(
            taken.ownReceivePayloadType == nil || !taken.telephoneEvents.contains { $0.payloadTypes.receive == 111 })
        #expect(try offered(111).ownReceivePayloadType == nil)
    }

    @Test("Each offer and answer has a higher version, the same session, section and name")
    func versions() throws {
        var (us, them) = try call()
        let second = try Sides.exchange(&us, &them)
        let third = try Sides.exchange(&them, &us)
        #expect(second.offer.origin.version == "2" && third.answer.origin.version == "3")
        #expect(second.offer.origin.sessionID == third.answer.origin.sessionID)
        #expect(third.offer.media.map(\.mid) == ["0"])
    }

    @Test("An offer that names another DTLS association is answered with a new one, though the certificate is the same")
    func anotherAssociation() throws {
        var us = OfferAnswer(Sides.media { $0.tlsID = "abcdefghij0123456789ours1" })
        var them = OfferAnswer(Sides.peer())
        func offer(_ name: String?) throws -> (NegotiationChanges, answer: SessionDescription) {
            var offer = try them.makeOffer()
            if let name { offer.media[0].attributes.append(.init("tls-id", name)) }
            let changes = try us.receive(offer: offer)
            let (answer, _) = try us.makeAnswer()
            _ = try them.accept(answer: answer)
            return (changes, answer)
        }
        let first = try offer("abcdefghij0123456789one")
        #expect(Sides.tlsID(first.answer) == "abcdefghij0123456789ours1")
        let same = try offer("abcdefghij0123456789one")
        #expect(!same.0.contains(.keys))
        let other = try offer("abcdefghij0123456789two")
        #expect(other.0.contains(.keys) && !other.0.contains(.formats))
        let silent = try offer(nil)
        #expect(!silent.0.contains(.keys) && Sides.tlsID(silent.answer) == nil)
    }

    @Test("Hold and resume change the direction and nothing else, from either side", arguments: [true, false])
    func hold(byUs: Bool) throws {
        var (us, them) = try call()
        func step(_ direction: MediaDirection) throws -> (NegotiationChanges, NegotiatedAudio, NegotiatedAudio) {
            let before = us.agreed
            us.local.direction = direction
            let ours: NegotiatedAudio
            let theirs: NegotiatedAudio
            if byUs {
                (_, _, ours, theirs) = try Sides.exchange(&us, &them)
            } else {
                // The answer alone can hold too.
                (_, _, theirs, ours) = try Sides.exchange(&them, &us)
            }
            return (NegotiationChanges(from: before, to: ours), ours, theirs)
        }
        let (changes, ours, theirs) = try step(.sendonly)
        #expect(changes == .direction)
        #expect(ours.direction == .sendonly && theirs.direction == .recvonly)
        #expect(theirs.isHeldByPeer && ours.remoteDirection.receives)
        #expect(try step(.inactive).1.direction == .inactive)
        let resumed = try step(.sendrecv)
        #expect(resumed.0 == .direction && resumed.2.direction == .sendrecv)
    }

    @Test("New credentials restart ICE on both sides; the DTLS association, its roles and who nominates stay")
    func restart() throws {
        var (us, them) = try call()
        let role = us.agreed?.keying
        them.local.ice = Sides.ice("third")
        let offer = try Sides.sent(them.makeOffer())
        #expect(try us.receive(offer: offer) == .ice)
        us.local.ice = Sides.ice("fourth")
        let (answer, audio) = try us.makeAnswer()
        #expect(audio.keying == role && answer.media[0].setup == "passive")
        #expect(audio.ice?.isControlling == true)
        let before = them.agreed
        let theirs = try them.accept(answer: Sides.sent(answer))
        #expect(NegotiationChanges(from: before, to: theirs) == .ice)
        #expect(theirs.ice?.isControlling == false && theirs.ice?.remote.usernameFragment == "fourthFrag")
    }

    @Test(
        "An association continues though a browser writes the other role after a restart, and not with a new certificate"
    )
    func associations() throws {
        var (us, them) = try call()
        var offer = try Sides.sent(them.makeOffer())
        func setup(_ value: String) {
            offer.media[0].attributes.removeAll { $0.name == "setup" }
            offer.media[0].attributes.append(SDPAttribute("setup", value))
        }
        setup("passive")
        #expect(try us.makeAnswer(to: offer).audio.keying == us.agreed?.keying)
        them.local.keying = [.dtls(fingerprints: [Sides.ourFingerprint])]
        offer = try Sides.sent(them.makeOffer())
        setup("passive")
        #expect(try us.receive(offer: offer) == .keys)
        #expect(try us.makeAnswer().audio.keying == .dtls(remote: [Sides.ourFingerprint], role: .active))
    }

    @Test("Offers that cross throw and change nothing; who rolls back answers, with the credentials of before")
    func glare() throws {
        var (us, them) = try call()
        us.local.ice = Sides.ice("third")
        _ = try us.makeOffer()
        let theirs = try Sides.sent(them.makeOffer())
        #expect(Sides.error { _ = try us.makeAnswer(to: theirs) }?.code == .wrongState)
        #expect(us.state == .haveLocalOffer)
        us.rollback()
        #expect(us.state == .stable && us.local.ice == Sides.ice("us"))
        let (answer, _) = try us.makeAnswer(to: theirs)
        let audio = try them.accept(answer: Sides.sent(answer))
        #expect(audio.ice?.remote.usernameFragment == "usFrag")
        #expect(try Sides.exchange(&us, &them).ours.direction == .sendrecv)
    }

    @Test("Calls out of order throw: an answer to nothing, an offer upon an offer that waits")
    func order() throws {
        var (us, them) = try call()
        #expect(Sides.error { _ = try us.makeAnswer() }?.code == .nothingOffered)
        try us.receive(offer: Sides.sent(them.makeOffer()))
        #expect(Sides.error { _ = try us.makeOffer() }?.code == .wrongState)
        us.rollback()
        #expect(Sides.error { _ = try us.makeAnswer() }?.code == .nothingOffered)
        // An offer that came before the answer to the last is the one that counts.
        try us.receive(offer: Sides.sent(them.makeOffer()))
        let newer = try Sides.sent(them.makeOffer())
        try us.receive(offer: newer)
        #expect(try us.makeAnswer().description.media.count == 1)
    }

    @Test("An offer that cannot be answered leaves what was agreed")
    func badOffer() throws {
        var (us, them) = try call()
        let before = us.agreed
        var offer = try Sides.sent(them.makeOffer())
        offer.media[0].formats = ["9"]
        #expect(Sides.error { _ = try us.makeAnswer(to: offer) }?.code == .noCommonCodec)
        #expect(us.state == .stable && us.agreed == before)
    }

    @Test("Sections that were refused keep their places in our own offers, and numbers keep their meaning")
    func places() throws {
        var us = OfferAnswer(Sides.media { $0.codecs = [.opus, .pcmu] })
        let browser = try Vectors.description("firefox-153-audio-video-data-offer.sdp")
        _ = try us.makeAnswer(to: browser)
        let offer = try us.makeOffer()
        #expect(offer.media.map(\.kind) == ["audio", "video", "application"])
        #expect(offer.media.map(\.mid) == browser.media.map(\.mid))
        #expect(offer.media.map { $0.port == 0 } == [false, true, true])
        #expect(offer.media[1].formats.compactMap { Int($0) }.allSatisfy { offer.media[1].rtpMap($0) != nil })
        #expect(offer.media[0].formats.first == "109" && offer.media[0].rtpMap(101)?.encoding == "telephone-event")
        #expect(offer.media[0].rtpMap(101)?.clockRate == 8_000)
        let ids = offer.media[0].attributes.filter { $0.name == "extmap" }.compactMap(\.value)
        #expect(ids.contains("7 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"))
        #expect(Set(ids.compactMap { $0.split(separator: " ").first }).count == ids.count)
        #expect(offer.attributes.contains(SDPAttribute("group", "BUNDLE 0")))
    }

    @Test("The answer to an offer of 60 video sections fits in one message; an offer of 900 is refused")
    func manyRefusals() throws {
        var us = OfferAnswer(Sides.media())
        var offer = try Vectors.description("firefox-153-audio-video-data-offer.sdp")
        var video = offer.media[1]
        video.formats = (96..<127).map { "\($0)" }
        video.attributes = (96..<127).map { SDPAttribute("rtpmap", "\($0) VP8/90000") }
        offer.media += Array(repeating: video, count: 900)
        #expect(Sides.error { try us.receive(offer: offer) }?.code == .tooManySections)
        offer.media.removeLast(840)
        let answer = try us.makeAnswer(to: offer).description
        #expect(answer.media.count == 63)
        #expect(answer.serialized().utf8.count < 56_000)
        #expect(answer.media.last?.formats.isEmpty == false)
    }

    @Test("Numbers that the peer gives a new meaning are never offered with the old one beside it")
    func stolenNumbers() throws {
        var (us, them) = try call()
        var offer = try Sides.sent(them.makeOffer())
        for (index, attribute) in offer.media[0].attributes.enumerated() {
            let value = attribute.value?
                .replacing("110 telephone-event/48000", with: "63 telephone-event/48000")
                .replacing("63 red/48000/2", with: "110 red/48000/2")
                .replacing("1 urn:ietf:params:rtp-hdrext:ssrc", with: "4 urn:ietf:params:rtp-hdrext:ssrc")
                .replacing("4 urn:ietf:params:rtp-hdrext:sdes", with: "9 urn:unknown")
            offer.media[0].attributes[index].value = value
        }
        _ = try us.makeAnswer(to: offer)
        let ours = try us.makeOffer().media[0]
        #expect(ours.rtpMap(63)?.encoding == "telephone-event" && ours.rtpMap(96)?.encoding == "red")
        #expect(Set(ours.formats).count == ours.formats.count)
        let numbers = ours.attributes.filter { $0.name == "extmap" }.compactMap {
            $0.value?.split(separator: " ").first
        }
        #expect(numbers.count == 4 && Set(numbers).count == 4)
    }

    @Test("Audio that moves to another section is taken there; the section of before is refused")
    func moved() throws {
        var (us, them) = try call()
        var offer = try Sides.sent(them.makeOffer())
        var next = offer.media[0]
        next.attributes.removeAll { $0.name == "mid" }
        next.attributes.append(SDPAttribute("mid", "1"))
        offer.media[0].port = 0
        offer.media.append(next)
        offer.attributes = [SDPAttribute("group", "BUNDLE 1")]
        let (answer, audio) = try us.makeAnswer(to: offer)
        #expect(answer.media.map { $0.port == 0 } == [true, false])
        #expect(audio.mid == "1" && answer.attributes.contains(SDPAttribute("group", "BUNDLE 1")))
        #expect(try us.makeOffer().media.map { $0.port == 0 } == [true, false])
    }

    @Test("A call that began with SDES continues with it, though DTLS is preferred")
    func keepsSDES() throws {
        let key = try #require(SDESKey(suite: .aeadAES128GCM, material: [UInt8](repeating: 1, count: 28)))
        let other = try #require(SDESKey(suite: .aeadAES128GCM, material: [UInt8](repeating: 2, count: 28)))
        var us = OfferAnswer(Sides.media { $0.keying.append(.sdes([key])) })
        var phone = OfferAnswer(
            LocalMedia(
                address: "192.0.2.5", port: 4_000, ssrc: 1, canonicalName: "phone", sessionID: 1,
                keying: [.sdes([other])]))
        us.local.ice?.candidates = ["candidate:1 1 UDP 5 192.0.2.8 6000 typ host"]
        let (_, answer, _, ours) = try Sides.exchange(&phone, &us)
        #expect(ours.keying == .sdes(send: key, receive: other) && ours.ice == nil)
        #expect(answer.media[0].port == 6_000 && answer.media[0].profile == "RTP/SAVP")
        let again = try us.makeOffer()
        #expect(again.media[0].profile == "RTP/SAVPF" && again.media[0].cryptoAttributes.count == 1)
        #expect(again.media[0].setup == nil)
    }
}

extension Sides {
    /// What the first section calls its end of the DTLS association.
    fileprivate static func tlsID(_ description: SessionDescription) -> String? {
        description.media[0].attributes.first { $0.name == "tls-id" }?.value
    }
}
