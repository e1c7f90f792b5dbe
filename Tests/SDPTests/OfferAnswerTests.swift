import Core
import SDP
import Testing

@Suite("Offer and answer")
struct OfferAnswerTests {
    private static let gcm = key(.aeadAES128GCM, 1)
    private static let counterMode = key(.aesCM128HMACSHA1, 2)
    private static let theirs = key(.aeadAES128GCM, 3)

    private static func line(_ tag: Int, _ key: SDESKey) -> SDPAttribute {
        SDPAttribute("crypto", "\(tag) \(key.suite.rawValue) inline:\(Base64.text(key.material))")
    }

    private static func key(_ suite: SDESSuite, _ byte: UInt8) -> SDESKey {
        guard let key = SDESKey(suite: suite, material: [UInt8](repeating: byte, count: suite.keyMaterialSize)) else {
            preconditionFailure("the test's own key has the wrong size")
        }
        return key
    }

    private static func media(
        address: String = "192.0.2.1", keying: [LocalKeying]? = nil, direction: MediaDirection = .sendrecv
    ) -> LocalMedia {
        var media = LocalMedia(
            address: address, port: 5_000, ssrc: 77, canonicalName: "us", sessionID: 1 << 63 | 42,
            keying: keying ?? [.sdes([gcm, counterMode])])
        media.direction = direction
        return media
    }

    private static func peer(keying: [LocalKeying]? = nil, direction: MediaDirection = .sendrecv) -> LocalMedia {
        var media = LocalMedia(
            address: "2001:db8::5", port: 6_000, ssrc: 88, canonicalName: "them", sessionID: 9,
            keying: keying ?? [.sdes([key(.aeadAES128GCM, 3), key(.aesCM128HMACSHA1, 4)])])
        media.direction = direction
        return media
    }

    private func error(_ body: () throws -> Void) -> NegotiationError? {
        do {
            try body()
            return nil
        } catch {
            return error as? NegotiationError
        }
    }

    private func answer(_ text: String, with media: LocalMedia) throws -> (SessionDescription, NegotiatedAudio) {
        var side = OfferAnswer(media)
        let (description, audio) = try side.makeAnswer(to: SessionDescription(parsing: text))
        return (try SessionDescription(parsing: description.serialized()), audio)
    }

    // MARK: Between two of us

    @Test("Two of us agree: GCM, each one's key for what it sends, RTCP with RTP, SSRC and name included")
    func bothEnds() throws {
        var offerer = OfferAnswer(Self.media())
        var answerer = OfferAnswer(Self.peer())
        let offer = try SessionDescription(parsing: offerer.makeOffer().serialized())
        let (answer, theirs) = try answerer.makeAnswer(to: offer)
        let ours = try offerer.accept(answer: SessionDescription(parsing: answer.serialized()))

        #expect(ours.keying == .sdes(send: Self.gcm, receive: Self.key(.aeadAES128GCM, 3)))
        #expect(theirs.keying == .sdes(send: Self.key(.aeadAES128GCM, 3), receive: Self.gcm))
        #expect(ours.remote == MediaEndpoint(address: "2001:db8::5", port: 6_000))
        #expect(theirs.remote == MediaEndpoint(address: "192.0.2.1", port: 5_000))
        #expect(ours.remoteSSRC == 88 && ours.remoteCanonicalName == "them")
        #expect(theirs.remoteSSRC == 77 && theirs.remoteCanonicalName == "us")
        for audio in [ours, theirs] {
            #expect(audio.control == .muxed)
            #expect(audio.sendPayloadType == 111 && audio.receivePayloadType == 111)
            #expect(audio.direction == .sendrecv)
            #expect(audio.packetTimeMilliseconds == 20)
            #expect(audio.remoteOpus.usesInbandFEC)
        }
    }

    @Test("The offer is written in full as RFC 8866, 4568 and 7587 have it")
    func offerText() throws {
        var side = OfferAnswer(Self.media())
        let offer = try side.makeOffer().serialized()
        let expected = Examples.lines(
            """
            v=0
            o=- 4611686018427387925 1 IN IP4 192.0.2.1
            s=-
            c=IN IP4 192.0.2.1
            t=0 0
            m=audio 5000 RTP/SAVP 111
            a=rtpmap:111 opus/48000/2
            a=fmtp:111 minptime=10;useinbandfec=1
            a=ptime:20
            a=sendrecv
            a=rtcp-mux
            a=rtcp:5000
            a=crypto:1 AEAD_AES_128_GCM inline:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==
            a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC
            a=ssrc:77 cname:us
            """)
        #expect(offer == expected)
    }

    @Test("A second offer has a higher version, and the same session id")
    func versions() throws {
        var side = OfferAnswer(Self.media())
        let (first, second) = (try side.makeOffer(), try side.makeOffer())
        #expect(first.origin.version == "1" && second.origin.version == "2")
        #expect(first.origin.sessionID == second.origin.sessionID)
    }

    @Test("Directions meet in what both allow (RFC 3264 §6.1)", arguments: MediaDirection.allCases)
    func directions(offered: MediaDirection) throws {
        for allowed in MediaDirection.allCases {
            var offerer = OfferAnswer(Self.media(direction: offered))
            var answerer = OfferAnswer(Self.peer(direction: allowed))
            let (answer, theirs) = try answerer.makeAnswer(to: offerer.makeOffer())
            let ours = try offerer.accept(answer: answer)
            #expect(ours.direction == theirs.direction.reversed)
            #expect(ours.direction.sends == (offered.sends && allowed.receives))
            #expect(ours.direction.receives == (offered.receives && allowed.sends))
        }
    }

    private static func offer(_ keying: [LocalKeying]) throws -> SessionDescription {
        var offerer = OfferAnswer(peer(keying: keying))
        return try offerer.makeOffer()
    }

    @Test(
        "An established call keeps its kind of protection: an offer of another is refused, and one with both is taken"
    )
    func keptProtection() throws {
        let ours: [LocalKeying] = [
            .dtls(fingerprints: [Sides.ourFingerprint]), .sdes([Self.gcm]), .plain,
        ]
        for (first, second, code) in [
            (LocalKeying.plain, LocalKeying.sdes([Self.theirs]), NegotiationError.Code.noAcceptableCrypto),
            (.plain, .dtls(fingerprints: [Sides.theirFingerprint]), .unsupportedProfile),
            (.sdes([Self.theirs]), .plain, .plainMediaRefused),
        ] {
            var us = OfferAnswer(Self.media(keying: ours))
            let before = try us.makeAnswer(to: Self.offer([first])).audio
            let other = try Self.offer([second])
            #expect(error { _ = try us.makeAnswer(to: other) }?.code == code)
            #expect(us.agreed == before && us.state == .stable)
        }
        // RFC 8643: keys on a plain profile may be taken, and need not.
        var us = OfferAnswer(Self.media(keying: ours))
        var offer = try Self.offer([.plain])
        _ = try us.makeAnswer(to: offer)
        offer.media[0].attributes += try Self.offer([.sdes([Self.theirs])]).media[0].attributes.filter {
            $0.name == "crypto"
        }
        #expect(try us.makeAnswer(to: offer).audio.keying == .plain)
        var fresh = OfferAnswer(Self.media(keying: ours))
        #expect(try fresh.makeAnswer(to: offer).audio.keying == .sdes(send: Self.gcm, receive: Self.theirs))
    }

    @Test("Plain RTP works where both allow it by name, and is never fallen back to from an offer of keys")
    func plain() throws {
        var offerer = OfferAnswer(Self.media(keying: [.plain]))
        var willing = OfferAnswer(Self.peer(keying: [.sdes([Self.gcm]), .plain]))
        let offer = try offerer.makeOffer()
        let (answer, theirs) = try willing.makeAnswer(to: offer)
        #expect(theirs.keying == .plain)
        #expect(answer.media[0].profile == "RTP/AVP")
        #expect(try offerer.accept(answer: answer).keying == .plain)

        var strict = OfferAnswer(Self.peer())
        #expect(error { _ = try strict.makeAnswer(to: offer) }?.code == .plainMediaRefused)

        var secure = OfferAnswer(Self.media(keying: [.sdes([Self.gcm]), .plain]))
        _ = try secure.makeOffer()
        #expect(error { _ = try secure.accept(answer: answer) }?.code == .answerDoesNotFit)
    }

    // MARK: With others

    @Test("A softphone's offer is answered: its 80-bit key, its payload type, video refused in its place")
    func softphone() throws {
        let (answer, audio) = try answer(Examples.softphone, with: Self.media())
        #expect(answer.media.map(\.port) == [5_000, 0])
        #expect(answer.media[1].kind == "video" && answer.media[1].formats == ["97"])
        #expect(answer.media[1].rtpMap(97) == RTPMap(payloadType: 97, encoding: "H264", clockRate: 90_000))
        #expect(answer.media[0].profile == "RTP/SAVPF")
        #expect(answer.media[0].formats == ["96"])
        let line = try #require(answer.media[0].cryptoAttributes.first)
        #expect(answer.media[0].cryptoAttributes.count == 1)
        #expect(line.tag == 2 && line.key == Self.counterMode)
        #expect(audio.sendPayloadType == 96 && audio.receivePayloadType == 96)
        #expect(audio.remote == MediaEndpoint(address: "192.0.2.10", port: 20_012))
        #expect(audio.remoteOpus.maximumAverageBitrate == 28_000)
        #expect(audio.remoteOpus.prefersStereo && audio.remoteOpus.sendsStereo)
        #expect(audio.remoteCanonicalName == "sip:phone@example.com")
    }

    @Test("An answer that listens only, wants 40 ms and is at a section's own IPv6 address is taken so")
    func firefoxLike() throws {
        var side = OfferAnswer(Self.media())
        _ = try side.makeOffer()
        let audio = try side.accept(answer: SessionDescription(parsing: Examples.firefoxLike))
        #expect(audio.direction == .sendonly)
        #expect(audio.packetTimeMilliseconds == 40)
        #expect(audio.remote.description == "[2001:db8::1:7]:40000")
        #expect(audio.sendPayloadType == 109 && audio.receivePayloadType == 111)
        #expect(audio.remoteOpus.wantsDTX && audio.remoteOpus.prefersStereo)
    }

    @Test("DTLS is refused in a sentence that names the transport, and PCMU in one that names the codec")
    func refusals() throws {
        let dtls = error { _ = try answer(Examples.chromium, with: Self.media()) }
        #expect(dtls?.code == .unsupportedProfile)
        #expect(dtls?.description.contains("UDP/TLS/RTP/SAVPF") == true)
        let telephone = error { _ = try answer(Examples.rfc3264Offer, with: Self.media(keying: [.plain])) }
        #expect(telephone?.code == .noCommonCodec)
        #expect(telephone?.description.contains("PCMU") == true)
        let video = "v=0\no=- 1 1 IN IP4 192.0.2.9\nm=video 9 RTP/AVP 99\nm=audio 0 RTP/AVP 0\n"
        #expect(error { _ = try answer(video, with: Self.media()) }?.code == .noAudio)
    }

    private func offer(
        connection: String = "c=IN IP4 192.0.2.9", profile: String = "RTP/AVP", _ attributes: String = ""
    ) -> String {
        "v=0\no=- 1 1 IN IP4 192.0.2.9\n\(connection)\nm=audio 7000 \(profile) 120\na=rtpmap:120 OPUS/48000/2\n"
            + attributes
    }

    @Test("The second of two audio sections is taken if only that one is acceptable")
    func secondSection() throws {
        let both =
            offer() + "a=mid:x\n"
            + offer(profile: "RTP/SAVP").split(separator: "\n").dropFirst(3).joined(separator: "\n")
            + "\na=mid:y\na=crypto:5 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\n"
        let (secured, audio) = try answer(both, with: Self.media())
        #expect(secured.media.map(\.port) == [0, 5_000])
        #expect(secured.media.map(\.mid) == ["x", "y"])
        #expect(audio.keying != .plain)
        let (plain, _) = try answer(both, with: Self.media(keying: [.plain]))
        #expect(plain.media.map(\.port) == [5_000, 0])
    }

    @Test("Keys on RTP/AVP are used where we have keys (RFC 8643), and not needed where plain RTP is allowed")
    func opportunistic() throws {
        let text = offer("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\n")
        let (protected, audio) = try answer(text, with: Self.media())
        #expect(audio.keying != .plain)
        #expect(protected.media[0].profile == "RTP/AVP")
        #expect(protected.media[0].cryptoAttributes.count == 1)
        #expect(try answer(text, with: Self.media(keying: [.plain])).1.keying == .plain)
    }

    @Test("RTCP goes to the next port, or where rtcp says, for a peer that does not multiplex")
    func separateControl() throws {
        let media = Self.media(keying: [.plain])
        func control(_ attributes: String) throws -> ControlRoute {
            try answer(offer(attributes), with: media).1.control
        }
        #expect(try control("") == .separate(MediaEndpoint(address: "192.0.2.9", port: 7_001)))
        #expect(try control("a=rtcp:7777\n") == .separate(MediaEndpoint(address: "192.0.2.9", port: 7_777)))
        #expect(
            try control("a=rtcp:53020 IN IP4 126.16.64.4\n")
                == .separate(MediaEndpoint(address: "126.16.64.4", port: 53_020)))
        #expect(try control("a=rtcp-mux\n") == .muxed)
        #expect(try !answer(offer(), with: media).0.media[0].offersRTCPMux)
    }

    @Test(
        "Packets that we send are as long as the peer requests and takes",
        arguments: [
            ("", 20), ("a=ptime:40\n", 40), ("a=ptime:30\n", 20), ("a=ptime:3\n", 10), ("a=ptime:120\n", 60),
            ("a=maxptime:10\n", 10), ("a=ptime:60\na=maxptime:40\n", 40), ("a=fmtp:120 minptime=40\n", 40),
            ("a=ptime:20.5\n", 20), ("a=ptime:x\n", 20), ("a=ptime:0\n", 20), ("a=maxptime:1\n", 10),
        ])
    func packetTime(attributes: String, expected: Int) throws {
        let audio = try answer(offer(attributes), with: Self.media(keying: [.plain])).1
        #expect(audio.packetTimeMilliseconds == expected)
    }

    @Test(
        "Addresses that packets cannot be sent to are refused",
        arguments: [
            "c=IN IP4 example.com", "c=IN IP4 224.2.1.1/127", "c=IN IP6 ff15::101", "c=IN IP4 1.2.3",
            "c=IN IP6 1::2::3",
            "c=IN IP4 256.0.0.1", "c=IN IP6 :::", "c=IN IP6 12345::", "b=AS:1", "c=IN IP6 1:2:3:4:5:6:7:8:9",
            "c=IN IP4 f81d4fae.local",
        ])
    func addresses(connection: String) {
        let text = offer(connection: connection)
        #expect(error { _ = try answer(text, with: Self.media(keying: [.plain])) }?.code == .unusableAddress)
    }

    @Test(
        "IPv6 addresses are understood in all their shapes",
        arguments: [
            "::1", "2001:db8::", "::", "1:2:3:4:5:6:7:8", "::ffff:192.0.2.1", "fe80::1:2",
        ])
    func addresses6(address: String) throws {
        let audio = try answer(offer(connection: "c=IN IP6 \(address)"), with: Self.media(keying: [.plain])).1
        #expect(audio.remote.address == address)
    }

    @Test("The address of zeros is a hold: we send nothing (RFC 3264 §8.4)")
    func oldHold() throws {
        let audio = try answer(offer(connection: "c=IN IP4 0.0.0.0"), with: Self.media(keying: [.plain])).1
        #expect(audio.direction == .recvonly)
    }

    @Test("A direction of the whole session counts for sections without their own")
    func sessionDirection() throws {
        let text =
            "v=0\no=- 1 1 IN IP4 192.0.2.9\nc=IN IP4 192.0.2.9\na=sendonly\nm=audio 7000 RTP/AVP 120\n"
            + "a=rtpmap:120 opus/48000/2\n"
        #expect(try answer(text, with: Self.media(keying: [.plain])).1.direction == .recvonly)
    }

    @Test(
        "Keys that cannot be used give an error that says why and shows none",
        arguments: [
            ("", "no \"crypto\" line"),
            ("a=crypto:1 AES_256_CM_HMAC_SHA1_80 inline:AAAA\n", "suite"),
            ("a=crypto:1 AEAD_AES_128_GCM inline:AAAASECRET==\n", "28 bytes"),
            ("a=crypto:1 AEAD_AES_128_GCM inline:AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw==|2^20|1:4\n", "MKI"),
            ("a=crypto:1 AEAD_AES_128_GCM inline:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==\n", "our own key"),
        ])
    func unusableKeys(line: String, reason: String) {
        let failure = error { _ = try answer(offer(profile: "RTP/SAVP", line), with: Self.media()) }
        #expect(failure?.code == .noAcceptableCrypto)
        #expect(failure?.description.contains(reason) == true)
        #expect(failure?.description.contains("AAAA") == false)
    }

    @Test("Answers that refuse or do not fit are distinguished, and the offer stays out")
    func badAnswers() throws {
        var side = OfferAnswer(Self.media())
        let good = try SessionDescription(parsing: Examples.firefoxLike)
        #expect(error { _ = try side.accept(answer: good) }?.code == .nothingOffered)
        _ = try side.makeOffer()

        func code(_ change: (inout MediaSection) -> Void) -> NegotiationError.Code? {
            var answer = good
            change(&answer.media[0])
            return error { _ = try side.accept(answer: answer) }?.code
        }
        #expect(code { $0.port = 0 } == .refused)
        #expect(code { $0.kind = "video" } == .answerDoesNotFit)
        #expect(code { $0.profile = "RTP/AVP" } == .answerDoesNotFit)
        #expect(code { $0.formats = ["8"] } == .noCommonCodec)
        #expect(code { $0.connection = nil } == .unusableAddress)
        #expect(code { $0.attributes.removeAll { $0.name == "crypto" } } == .noAcceptableCrypto)
        #expect(
            code { section in
                section.attributes.removeAll { $0.name == "crypto" }
                // A suite that was not offered.
                let key = Self.key(.aesCM128HMACSHA1Short, 9)
                section.attributes.append(Self.line(1, key))
            } == .noAcceptableCrypto)
        var twice = good
        twice.media.append(good.media[0])
        #expect(error { _ = try side.accept(answer: twice) }?.code == .answerDoesNotFit)
        #expect(try side.accept(answer: good).remoteSSRC == 1_234)
    }

    @Test("An answer's suite says which of our keys is taken if its tag does not; a line with both right comes first")
    func otherTags() throws {
        let theirs = Self.key(.aesCM128HMACSHA1, 5)
        let gcm = Self.key(.aeadAES128GCM, 6)
        for (lines, send, receive) in [
            ([(1, theirs)], Self.counterMode, theirs), ([(9, theirs)], Self.counterMode, theirs),
            ([(2, gcm)], Self.gcm, gcm), ([(1, theirs), (1, gcm)], Self.gcm, gcm),
            ([(7, theirs), (8, gcm)], Self.counterMode, theirs),
        ] as [([(Int, SDESKey)], SDESKey, SDESKey)] {
            var side = OfferAnswer(Self.media())
            _ = try side.makeOffer()
            var answer = try SessionDescription(parsing: Examples.firefoxLike)
            answer.media[0].attributes.removeAll { $0.name == "crypto" }
            answer.media[0].attributes += lines.map(Self.line)
            #expect(try side.accept(answer: answer).keying == .sdes(send: send, receive: receive))
        }
    }

    @Test("A suite with a short tag is taken from an offer that has no other, and after the others from one that has")
    func shortTag() throws {
        let short = Self.key(.aesCM128HMACSHA1Short, 7)
        let line = "a=crypto:4 AES_CM_128_HMAC_SHA1_32 inline:NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj\n"
        let media = Self.media(keying: [.sdes([Self.gcm, Self.counterMode, short])])
        let (description, audio) = try answer(offer(profile: "RTP/SAVP", line), with: media)
        #expect(description.media[0].cryptoAttributes == [CryptoAttribute(tag: 4, key: short)])
        guard case .sdes(short, _) = audio.keying else { return #expect(Bool(false)) }
        let long = "a=crypto:5 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\n"
        let (both, _) = try answer(offer(profile: "RTP/SAVP", line + long), with: media)
        #expect(both.media[0].cryptoAttributes == [CryptoAttribute(tag: 5, key: Self.counterMode)])
        #expect(
            error { _ = try answer(offer(profile: "RTP/SAVP", line), with: Self.media()) }?.code == .noAcceptableCrypto)
    }

    @Test("An offer without any way of protecting media is not made")
    func nothingAllowed() {
        var none = OfferAnswer(Self.media(keying: []))
        #expect(error { _ = try none.makeOffer() }?.code == .noAcceptableCrypto)
        var empty = OfferAnswer(Self.media(keying: [.sdes([])]))
        #expect(error { _ = try empty.makeOffer() }?.code == .noAcceptableCrypto)
    }
}
