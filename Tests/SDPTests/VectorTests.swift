import SDP
import Testing

@Suite("Descriptions of browsers and servers")
struct VectorTests {
    @Test("There are descriptions of at least eight makers")
    func makers() {
        let makers = Set(Vectors.names.compactMap { $0.split(separator: "-").first })
        #expect(makers.count >= 8)
        #expect(Vectors.names.count >= 30)
    }

    @Test("Each is read, and what is written of it reads back as the same", arguments: Vectors.names)
    func roundTrip(name: String) throws {
        let description = try Vectors.description(name)
        #expect(try SessionDescription(parsing: description.serialized()) == description)
        #expect(!description.media.isEmpty)
    }

    @Test("Each is cut at every line and never traps", arguments: Vectors.names)
    func truncation(name: String) throws {
        let lines = try Vectors.text(name).split(separator: "\n", omittingEmptySubsequences: false)
        for count in 0..<lines.count {
            let text = lines.prefix(count).joined(separator: "\n")
            guard let description = try? SessionDescription(parsing: text) else { continue }
            var side = OfferAnswer(Sides.media { $0.codecs = [.opus, .pcmu, .pcma] })
            _ = try? side.makeAnswer(to: description)
            var other = OfferAnswer(Sides.media { $0.codecs = [.opus, .pcmu, .pcma] })
            _ = try? other.makeOffer()
            _ = try? other.accept(answer: description)
        }
    }

    @Test(
        "Browsers' offers are answered: Opus over DTLS, us active, ICE of theirs, all but the audio refused",
        arguments: Vectors.names.filter { $0.contains("offer") && ($0.hasPrefix("chr") || $0.hasPrefix("fire")) })
    func browserOffers(name: String) throws {
        let offer = try Vectors.description(name)
        var side = OfferAnswer(Sides.media())
        let (answer, audio) = try side.makeAnswer(to: offer)
        let index = try #require(offer.media.firstIndex { $0.kind == "audio" })
        let offered = offer.media[index]
        let section = answer.media[index]

        #expect(audio.codec == .opus)
        #expect(audio.sendPayloadType == (name.hasPrefix("chromium") ? 111 : 109))
        #expect(audio.remoteOpus.usesInbandFEC)
        #expect(audio.control == .muxed)
        guard case .dtls(let remote, .active) = audio.keying else {
            Issue.record("not DTLS with us active")
            return
        }
        #expect(remote.count == 1 && remote.first?.algorithm == "sha-256" && remote.first?.bytes.count == 32)
        #expect(audio.ice?.remote.usernameFragment == offered.iceUsernameFragment)
        #expect(audio.ice?.remote.trickles == true && audio.ice?.isControlling == false)
        #expect(audio.ice?.remote.candidates == offered.candidates)
        #expect(audio.ice?.remote.hasEnded == offered.attributes.contains(SDPAttribute("end-of-candidates")))
        #expect(audio.mid == offered.mid && section.mid == offered.mid)
        for kind in [RTPHeaderExtensionKind.audioLevel, .mid, .transportSequenceNumber] {
            let number = try #require(audio.sendIdentifier(kind))
            #expect(audio.receiveIdentifier(kind) == number)
            #expect(offered.attributes.contains(SDPAttribute("extmap", "\(number) \(kind.rawValue)")))
        }
        #expect(audio.feedback == [.transportWide])
        #expect(audio.direction == (offered.direction ?? .sendrecv).reversed)
        #expect(audio.telephoneEvents.contains { $0.clockRate == 8_000 })
        #expect(audio.remoteCanonicalName != nil || !audio.remoteDirection.sends)

        #expect(section.setup == "active" && section.profile == "UDP/TLS/RTP/SAVPF")
        #expect(section.port != 0 && section.offersRTCPMux)
        #expect(answer.media.count == offer.media.count)
        let group = try #require(answer.attributes.first { $0.name == "group" }?.value)
        for (theirs, ours) in zip(offer.media, answer.media) {
            #expect(ours.mid == theirs.mid && ours.kind == theirs.kind)
            let isBundled = group.split(separator: " ").contains { $0 == theirs.mid ?? "" }
            #expect(isBundled == (ours.port != 0))
            for number in ours.formats.compactMap({ Int($0) }) {
                #expect(ours.rtpMap(number) != nil, "Pion reads refused sections, too: \(ours.kind) \(number)")
            }
        }
    }

    @Test("Chromium's redundancy and its events at both rates are taken, Firefox' one rate too")
    func browserFormats() throws {
        var side = OfferAnswer(Sides.media())
        let chromium = try side.makeAnswer(to: Vectors.description("chromium-156-audio-offer.sdp")).audio
        #expect(chromium.redundancy == PayloadTypes(send: 63, receive: 63))
        #expect(chromium.telephoneEvents.map(\.clockRate) == [48_000, 8_000])
        #expect(chromium.telephoneEvents.map(\.payloadTypes.send) == [110, 126])
        #expect(chromium.usesReducedSizeRTCP && chromium.comfortNoise == nil)
        var other = OfferAnswer(Sides.media())
        let firefox = try other.makeAnswer(to: Vectors.description("firefox-153-audio-offer.sdp")).audio
        #expect(firefox.redundancy == nil)
        #expect(firefox.telephoneEvents.map(\.payloadTypes.send) == [101])
        #expect(firefox.remoteOpus.prefersStereo && firefox.remoteOpus.minimumPacketTimeMilliseconds == 3)
    }

    @Test("G.711 is taken from a browser where that alone is allowed, with its comfort noise")
    func browserG711() throws {
        var side = OfferAnswer(
            Sides.media {
                $0.codecs = [.pcma]
                $0.usesComfortNoise = true
            })
        let (answer, audio) = try side.makeAnswer(to: Vectors.description("chromium-156-audio-offer.sdp"))
        #expect(audio.codec == .pcma && audio.sendPayloadType == 8)
        #expect(audio.comfortNoise == PayloadTypes(send: 13, receive: 13))
        #expect(audio.redundancy == nil)
        #expect(answer.media[0].formats == ["8", "13", "110", "126"])
    }

    @Test(
        "Where ours was offered on another section's transport, that one is answered as inactive, not refused",
        arguments: ["chromium-156-video-audio-max-bundle-offer.sdp", "firefox-153-video-audio-max-bundle-offer.sdp"])
    func carriers(name: String) throws {
        var side = OfferAnswer(Sides.media())
        let (answer, audio) = try side.makeAnswer(to: Vectors.description(name))
        #expect(answer.media.map(\.kind) == ["video", "audio"])
        #expect(answer.media[0].direction == .inactive && answer.media[0].port == answer.media[1].port)
        #expect(answer.media[0].iceUsernameFragment == "usFrag")
        #expect(answer.attributes.first { $0.name == "group" }?.value == "BUNDLE 0 1")
        guard case .dtls = audio.keying else {
            Issue.record("the fingerprint of the session counts")
            return
        }
        let again = try side.makeOffer()
        #expect(again.media[0].direction == .inactive && again.media[0].setup == "actpass")
        #expect(again.media[1].direction == .sendrecv)
    }

    @Test(
        "Of two browsers' talk we see hold, resume with new ICE, and what did not change",
        arguments: [
            "chromium-156-session", "firefox-153-session",
        ])
    func session(prefix: String) throws {
        var side = OfferAnswer(Sides.media())
        #expect(try side.receive(offer: Vectors.description("\(prefix)-offer.sdp")) == .first)
        #expect(side.state == .haveRemoteOffer)
        let first = try side.makeAnswer().audio
        #expect(!first.isHeldByPeer)
        #expect(try side.receive(offer: Vectors.description("\(prefix)-hold-offer.sdp")) == .direction)
        let held = try side.makeAnswer().audio
        #expect(held.direction == .recvonly && held.isHeldByPeer)
        let restart = try Vectors.description("\(prefix)-restart-offer.sdp")
        #expect(try side.receive(offer: restart) == [.direction, .ice])
        #expect(Sides.error { _ = try side.makeAnswer() }?.code == .staleICECredentials)
        #expect(side.state == .haveRemoteOffer)
        side.local.ice = Sides.ice("new")
        let resumed = try side.makeAnswer().audio
        #expect(resumed.direction == .sendrecv && resumed.keying == first.keying)
        #expect(try side.receive(offer: restart).isEmpty)
    }

    @Test(
        "Servers' offers are answered with what they have",
        arguments: [
            ("safari-13-offer.sdp", AudioCodec.opus, 111), ("freeswitch-offer.sdp", .opus, 102),
            ("sipsorcery-offer.sdp", .pcmu, 0), ("twilio-lite-offer.sdp", .opus, 111),
            ("aiortc-1.16.0-audio-video-data-offer.sdp", .opus, 96),
        ])
    func serverOffers(name: String, codec: AudioCodec, payloadType: Int) throws {
        var side = OfferAnswer(Sides.media { $0.codecs = [.opus, .pcmu, .pcma] })
        let offer = try Vectors.description(name)
        let (answer, audio) = try side.makeAnswer(to: offer)
        #expect(audio.codec == codec && Int(audio.sendPayloadType) == payloadType)
        #expect(answer.media[0].profile == offer.media[0].profile)
        #expect(answer.media[0].setup == "active")
        #expect(audio.ice?.isControlling == (name.hasPrefix("twilio")))
        #expect(audio.ice?.remote.isLite == (name.hasPrefix("twilio")))
    }

    @Test("FreeSWITCH says its packet times among the parameters of Opus")
    func freeSWITCH() throws {
        var side = OfferAnswer(Sides.media { $0.packetTimeMilliseconds = 60 })
        let audio = try side.makeAnswer(to: Vectors.description("freeswitch-offer.sdp")).audio
        #expect(audio.remoteOpus.packetTimeMilliseconds == 20 && audio.packetTimeMilliseconds == 20)
        #expect(audio.remoteMaximumPacketTimeMilliseconds == 40)
        #expect(audio.remoteOpus.maximumAverageBitrate == 30_000)
        #expect(!audio.usesReducedSizeRTCP && audio.feedback.isEmpty && audio.headerExtensions.isEmpty)
    }

    @Test("Asterisk's empty fingerprint, and its second port for RTCP, are refused in words that name them")
    func asterisk() throws {
        let media = Sides.media { $0.codecs = [.opus, .pcmu] }
        var side = OfferAnswer(media)
        let empty = Sides.error {
            _ = try side.makeAnswer(to: Vectors.description("asterisk-16-offer-empty-fingerprint.sdp"))
        }
        #expect(empty?.code == .noFingerprint)
        #expect(empty?.description.contains("fingerprint") == true)
        _ = try side.makeOffer()
        let unmuxed = Sides.error {
            _ = try side.accept(answer: Vectors.description("asterisk-13-answer-without-mux.sdp"))
        }
        #expect(unmuxed?.code == .multiplexingNeeded)
        #expect(side.state == .haveLocalOffer)
        var plain = OfferAnswer(Sides.media { $0.ice?.candidates = ["1 1 udp 1 192.0.2.7 4000 typ host"] })
        #expect(
            Sides.error { _ = try plain.makeAnswer(to: Vectors.description("asterisk-plain-offer.sdp")) }?.code
                == .plainMediaRefused)
        plain.local.keying.append(.plain)
        let (answer, audio) = try plain.makeAnswer(to: Vectors.description("asterisk-plain-offer.sdp"))
        #expect(audio.keying == .plain && audio.ice == nil && audio.remote.port == 19_404)
        #expect(answer.media[0].port == 4_000 && answer.media[0].connection?.address == "192.0.2.7")
        #expect(answer.media[0].iceUsernameFragment == nil)
    }

    @Test(
        "Servers' answers settle our offer",
        arguments: [
            ("mediasoup-client-answer.sdp", AudioCodec.opus, 96, true),
            ("aiortc-1.16.0-answer.sdp", .opus, 111, false),
            ("freeswitch-answer.sdp", .pcma, 8, false),
            ("pion-livekit-answer.sdp", .opus, 111, false),
        ])
    func serverAnswers(name: String, codec: AudioCodec, payloadType: Int, isLite: Bool) throws {
        var side = OfferAnswer(
            Sides.media {
                $0.codecs = [.opus, .pcmu, .pcma]
                $0.feedback = [.transportWide, .nack]
            })
        _ = try side.makeOffer()
        let audio = try side.accept(answer: Vectors.description(name))
        #expect(side.state == .stable)
        #expect(audio.codec == codec && Int(audio.sendPayloadType) == payloadType)
        guard case .dtls(_, .passive) = audio.keying else {
            Issue.record("the server is active")
            return
        }
        #expect(audio.ice?.isControlling == true && audio.ice?.remote.isLite == isLite)
        if name.hasPrefix("pion") {
            #expect(audio.redundancy == PayloadTypes(send: 63, receive: 63))
            #expect(audio.feedback == [.transportWide, .nack] && audio.remoteOpus.wantsDTX)
        }
    }
}
