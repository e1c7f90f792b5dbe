import SDP
import Testing

@Suite("Attributes of ICE, DTLS and header extensions")
struct BrowserAttributeTests {
    private static let offer = Result { try Vectors.description("chromium-156-audio-offer.sdp") }

    private func answer(
        media: LocalMedia = Sides.media(), _ change: (inout SessionDescription) -> Void
    ) throws -> (SessionDescription, NegotiatedAudio) {
        var offer = try Self.offer.get()
        change(&offer)
        var side = OfferAnswer(media)
        let (description, audio) = try side.makeAnswer(to: offer)
        return (try Sides.sent(description), audio)
    }

    private func code(_ change: (inout SessionDescription) -> Void) -> NegotiationError.Code? {
        Sides.error { _ = try answer(change) }?.code
    }

    private func replace(_ name: String, _ values: [String]) -> (inout SessionDescription) -> Void {
        { description in
            description.media[0].attributes.removeAll { $0.name == name }
            for value in values { description.media[0].attributes.append(SDPAttribute(name, value)) }
        }
    }

    private static let expectedOffer = Examples.lines(
        """
        v=0
        o=- 38 1 IN IP4 0.0.0.0
        s=-
        t=0 0
        a=group:BUNDLE 0
        a=extmap-allow-mixed
        m=audio 6000 UDP/TLS/RTP/SAVPF 111 63 0 13 110 126
        c=IN IP4 198.51.100.7
        a=mid:0
        a=candidate:1 1 udp 2130706431 192.0.2.1 5000 typ host
        a=candidate:2 1 udp 1694498815 198.51.100.7 6000 typ srflx raddr 192.0.2.1 rport 5000
        a=end-of-candidates
        a=ice-ufrag:usFrag
        a=ice-pwd:us0123456789012345678901
        a=ice-options:trickle ice2
        a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
        a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
        a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
        a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
        a=rtpmap:111 opus/48000/2
        a=fmtp:111 minptime=10;useinbandfec=1
        a=rtcp-fb:111 transport-cc
        a=rtpmap:63 red/48000/2
        a=fmtp:63 111/111
        a=rtpmap:0 PCMU/8000
        a=rtcp-fb:0 transport-cc
        a=rtpmap:13 CN/8000
        a=rtpmap:110 telephone-event/48000
        a=fmtp:110 0-16
        a=rtpmap:126 telephone-event/8000
        a=fmtp:126 0-16
        a=ptime:20
        a=sendrecv
        a=rtcp-mux
        a=rtcp-rsize
        a=rtcp:6000
        a=fingerprint:\(Sides.ourFingerprint)
        a=setup:actpass
        a=msid:- us
        a=ssrc:77 cname:us
        """)

    @Test("Our offer is written in full as RFC 9429 has it")
    func offerText() throws {
        var side = OfferAnswer(
            Sides.media {
                $0.codecs = [.opus, .pcmu]
                $0.usesComfortNoise = true
                $0.ice?.candidates = [
                    "candidate:1 1 udp 2130706431 192.0.2.1 5000 typ host",
                    "2 1 udp 1694498815 198.51.100.7 6000 typ srflx raddr 192.0.2.1 rport 5000",
                ]
                $0.ice?.hasEnded = true
            })
        let text = try side.makeOffer().serialized()
        #expect(text == Self.expectedOffer)
    }

    @Test("A section that is sent names stream and track, which Janus asks for, and none where it only listens")
    func streamName() throws {
        func msid(_ change: (inout LocalMedia) -> Void) throws -> [String] {
            var us = OfferAnswer(Sides.media(change: change))
            return try us.makeOffer().media[0].attributes.filter { $0.name == "msid" }.compactMap(\.value)
        }
        #expect(try msid { _ in } == ["- us"])
        #expect(try msid { $0.stream = MediaStreamName(stream: "desk", track: nil) } == ["desk us"])
        #expect(try msid { $0.stream = MediaStreamName(stream: nil, track: "voice") } == ["- voice"])
        #expect(try msid { $0.direction = .recvonly } == [])
        var (us, them) = (OfferAnswer(Sides.media()), OfferAnswer(Sides.peer()))
        let answer = try Sides.exchange(&us, &them).answer
        #expect(answer.media[0].attributes.contains(SDPAttribute("msid", "- them")))
    }

    @Test(
        "We answer passive to active and active to anything else, and to nothing with the role that is left",
        arguments: [
            ("actpass", "active"), ("active", "passive"), ("passive", "active"), ("ACTPASS", "active"),
        ])
    func setups(offered: String, answered: String) throws {
        #expect(try answer(replace("setup", [offered])).0.media[0].setup == answered)
    }

    @Test("No answer says actpass, and none may: a missing setup means active, others are refused")
    func setupFaults() throws {
        #expect(try answer(replace("setup", [])).0.media[0].setup == "passive")
        #expect(code(replace("setup", ["holdconn"])) == .noAcceptableCrypto)
        var us = OfferAnswer(Sides.media())
        var them = OfferAnswer(Sides.peer())
        var reply = try Sides.sent(them.makeAnswer(to: Sides.sent(us.makeOffer())).description)
        replace("setup", ["actpass"])(&reply)
        #expect(Sides.error { _ = try us.accept(answer: reply) }?.code == .answerDoesNotFit)
        replace("setup", ["passive"])(&reply)
        #expect(try us.accept(answer: reply).keying == .dtls(remote: [Sides.theirFingerprint], role: .active))
    }

    @Test("Fingerprints are read in any case, all that can be trusted, and weak or broken ones are none")
    func fingerprints() throws {
        let good = Sides.theirFingerprint.description
        let (_, audio) = try answer(
            replace("fingerprint", ["sha-1 00:01", "SHA-256 \(good.dropFirst(8).lowercased())", "md5 00"]))
        #expect(audio.keying == .dtls(remote: [Sides.theirFingerprint], role: .active))
        let faults: [[String]] = [
            [], [""], ["sha-256"], ["sha-256 00:11"], ["md5 " + (0..<16).map { _ in "00" }.joined(separator: ":")],
            [good.replacing(":FE", with: ":+E")], [good + ":00"], [good + " x"],
        ]
        for values in faults { #expect(code(replace("fingerprint", values)) == .noFingerprint) }
        var description = try Self.offer.get()
        let value = description.media[0].fingerprints[0]
        replace("fingerprint", [])(&description)
        description.attributes.append(SDPAttribute("fingerprint", value))
        var side = OfferAnswer(Sides.media())
        #expect(throws: Never.self) { _ = try side.makeAnswer(to: description) }
    }

    @Test(
        "ICE with a second port for RTCP is answered without ICE, to the address of the offer, unless the call has ICE")
    func twoComponents() throws {
        func telephone(_ description: inout SessionDescription) {
            replace("rtcp-mux", [])(&description)
            description.media[0].connection = ConnectionAddress(address: "192.0.2.77")
            description.media[0].port = 4_000
            replace("rtcp", ["4001"])(&description)
        }
        let media = Sides.media { ($0.address, $0.port) = ("192.0.2.1", 5_000) }
        let (answer, audio) = try answer(media: media, telephone)
        #expect(audio.ice == nil && audio.remote == MediaEndpoint(address: "192.0.2.77", port: 4_000))
        #expect(audio.control == .separate(MediaEndpoint(address: "192.0.2.77", port: 4_001)))
        #expect(!answer.media[0].attributes.contains { $0.name.hasPrefix("ice-") || $0.name == "rtcp-mux" })
        var side = OfferAnswer(media)
        var offer = try Self.offer.get()
        _ = try side.makeAnswer(to: offer)
        telephone(&offer)
        #expect(Sides.error { try side.receive(offer: offer) }?.code == .multiplexingNeeded)
    }

    @Test("Half of ICE, or credentials too short or with a colon, are refused; no ICE at all asks for an address")
    func malformedICE() {
        #expect(code(replace("ice-pwd", [])) == .malformedICE)
        #expect(code(replace("ice-ufrag", [])) == .malformedICE)
        #expect(code(replace("ice-ufrag", ["abc"])) == .malformedICE)
        #expect(code(replace("ice-ufrag", ["ab:cd"])) == .malformedICE)
        #expect(code(replace("ice-pwd", [String(repeating: "a", count: 21)])) == .malformedICE)
        #expect(code(replace("ice-pwd", [String(repeating: "a", count: 257)])) == .malformedICE)
        #expect(code(replace("rtcp-mux", [])) == .multiplexingNeeded)
        let failure = code { description in
            replace("ice-ufrag", [])(&description)
            replace("ice-pwd", [])(&description)
        }
        #expect(failure == .unusableAddress)
    }

    @Test("Credentials of the session, and candidates without bound, are taken within bounds")
    func sessionICE() throws {
        let (_, audio) = try answer { description in
            replace("ice-ufrag", [])(&description)
            replace("ice-pwd", [])(&description)
            description.attributes.append(SDPAttribute("ice-ufrag", "sess"))
            description.attributes.append(SDPAttribute("ice-pwd", String(repeating: "p", count: 22)))
            description.attributes.append(SDPAttribute("ice-lite"))
            replace("candidate", (0..<200).map { "\($0) 1 udp 1 192.0.2.1 9 typ host" })(&description)
        }
        #expect(audio.ice?.remote.usernameFragment == "sess" && audio.ice?.remote.isLite == true)
        #expect(audio.ice?.remote.candidates.count == 100)
        #expect(audio.ice?.isControlling == true)
        let text = "\(String(describing: audio.ice))\(String(reflecting: audio))"
        #expect(!text.contains("pppp"))
    }

    @Test("The default candidate is the relayed, then the one seen by a server, then IPv4; TCP and names never are")
    func defaultCandidate() throws {
        func port(_ candidates: [String]) throws -> Int {
            var side = OfferAnswer(Sides.media { $0.ice?.candidates = candidates })
            return try side.makeOffer().media[0].port
        }
        let host = "1 1 udp 1 192.0.2.1 1000 typ host"
        let six = "1 1 udp 1 2001:db8::1 1006 typ host"
        let reflexive = "2 1 UDP 1 192.0.2.1 2000 typ srflx raddr 0.0.0.0 rport 0"
        let relay = "candidate:3 1 udp 1 192.0.2.1 3000 typ relay raddr 0.0.0.0 rport 0"
        #expect(try port([six, host, reflexive, relay]) == 3_000)
        #expect(try port([six, reflexive, host]) == 2_000)
        #expect(try port([six, host]) == 1_000)
        #expect(try port([six]) == 1_006)
        #expect(try port(["1 1 tcp 1 192.0.2.1 9000 typ host", "1 1 udp 1 a.local 9001 typ host", "x", ""]) == 9)
        #expect(try port(["1 2 udp 1 192.0.2.1 1001 typ host"]) == 9)
    }

    @Test("Header extensions come with their numbers and directions turned, once each, and unknown ones are left out")
    func headerExtensions() throws {
        let level = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
        let mid = "urn:ietf:params:rtp-hdrext:sdes:mid"
        let (answer, audio) = try answer(
            replace(
                "extmap",
                [
                    "1/sendonly \(level) vad=on", "2 \(level)", "3/recvonly \(mid)", "15 urn:x", "0 urn:y", "x urn:z",
                    "256 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
                ]))
        #expect(audio.headerExtensions.count == 2)
        #expect(audio.receiveIdentifier(.audioLevel) == 1 && audio.sendIdentifier(.audioLevel) == nil)
        #expect(audio.sendIdentifier(.mid) == 3 && audio.receiveIdentifier(.mid) == nil)
        let lines = answer.media[0].attributes.filter { $0.name == "extmap" }.compactMap(\.value)
        #expect(lines == ["1/recvonly \(level)", "3/sendonly \(mid)"])
    }

    @Test("Redundancy counts only if it carries our Opus, and feedback only where the profile has it")
    func formats() throws {
        #expect(try answer(replace("fmtp", ["63 111/0"])).1.redundancy == nil)
        #expect(try answer(replace("fmtp", ["63 111/111/111"])).1.redundancy?.send == 63)
        #expect(try answer(replace("rtcp-fb", ["* nack", "111 nack pli"])).1.feedback.isEmpty)
        let media = Sides.media { $0.feedback = [.nack] }
        #expect(try answer(media: media, replace("rtcp-fb", ["* nack"])).1.feedback == [.nack])
        #expect(try answer(media: media, replace("rtcp-fb", ["0 nack"])).1.feedback.isEmpty)
        let (plain, audio) = try answer(media: media) { description in
            replace("rtcp-fb", ["* nack"])(&description)
            description.media[0].profile = "UDP/TLS/RTP/SAVP"
        }
        #expect(audio.feedback.isEmpty && plain.media[0].profile == "UDP/TLS/RTP/SAVP")
    }

    @Test("Every parameter of RFC 7587 is written as it is read")
    func opusParameters() throws {
        let text =
            "minptime=10;ptime=40;maxptime=60;maxplaybackrate=16000;sprop-maxcapturerate=24000;"
            + "maxaveragebitrate=20000;stereo=1;sprop-stereo=1;cbr=1;useinbandfec=1;usedtx=1"
        let media = Sides.media { $0.opus = OpusParameters(parsing: text) }
        let (answer, _) = try answer(media: media) { _ in }
        #expect(answer.media[0].formatParameters(111) == text)
        #expect(media.opus.packetTimeMilliseconds == 40 && media.opus.maximumPacketTimeMilliseconds == 60)
        let opus = try self.answer(replace("fmtp", ["111 ptime=60;maxptime=40"])).1
        #expect(opus.packetTimeMilliseconds == 40 && opus.remoteMaximumPacketTimeMilliseconds == 40)
    }

    @Test("DTLS on the plain profile of older SIP servers is taken where DTLS is allowed")
    func opportunistic() throws {
        let (answer, audio) = try answer { $0.media[0].profile = "RTP/SAVPF" }
        guard case .dtls = audio.keying else {
            Issue.record("the fingerprint asks for DTLS")
            return
        }
        #expect(answer.media[0].profile == "RTP/SAVPF" && answer.media[0].setup == "active")
    }

    @Test("A second codec of the peer's answer may be received too, each under our number")
    func asymmetricAnswer() throws {
        var us = OfferAnswer(Sides.media { $0.codecs = [.opus, .pcmu, .pcma] })
        var them = OfferAnswer(Sides.peer { $0.codecs = [.opus, .pcmu, .pcma] })
        var reply = try Sides.sent(them.makeAnswer(to: Sides.sent(us.makeOffer())).description)
        reply.media[0].formats = ["0", "120", "121"]
        reply.media[0].attributes.append(SDPAttribute("rtpmap", "120 opus/48000/2"))
        reply.media[0].attributes.append(SDPAttribute("rtpmap", "121 telephone-event/8000"))
        let audio = try us.accept(answer: reply)
        #expect(audio.codecs.map(\.codec) == [.pcmu, .opus])
        #expect(audio.codecs.map(\.payloadTypes) == [.init(send: 0, receive: 0), .init(send: 120, receive: 111)])
        #expect(audio.telephoneEvents.map(\.payloadTypes) == [.init(send: 121, receive: 126)])
    }
}
