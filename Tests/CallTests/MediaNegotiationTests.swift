import AudioKit
import CallControl
import CallMedia
import Core
import Foundation
import ICE
import SDP
import SecureTransport
import TestSupport
import Testing

@testable import Call

@Suite("One call's offers and answers")
struct MediaNegotiationTests {
    private static func side(
        seed: UInt64, _ change: (inout MediaNegotiation.Settings) -> Void = { _ in }
    ) throws -> MediaNegotiation {
        var generator = SeededGenerator(seed: seed)
        var negotiation = try MediaNegotiation.made(using: &generator, change)
        negotiation.bring(ICECredentials(using: &generator), candidates: [])
        return negotiation
    }

    private static func credentials(_ seed: UInt64) -> ICECredentials {
        var generator = SeededGenerator(seed: seed)
        return ICECredentials(using: &generator)
    }

    @Test("The sound's own section decides whether an answer has ICE, and not what video beside it offers")
    func iceOfSound() {
        func offer(session: String = "", audio: String, video: String) -> CallDescription {
            let sdp =
                "v=0\r\no=- 7 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n\(session)"
                + "m=audio 4000 RTP/AVP 0\r\n\(audio)m=video 4002 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n\(video)"
            return .offer(sdp)
        }
        let ice = "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
        let mux = "a=rtcp-mux\r\n"
        #expect(!MediaNegotiation.usesICE(offer(audio: ice, video: ice + mux)))
        #expect(!MediaNegotiation.usesICE(offer(audio: mux, video: ice + mux)))
        #expect(MediaNegotiation.usesICE(offer(audio: ice + mux, video: ice)))
        #expect(MediaNegotiation.usesICE(offer(session: ice, audio: mux, video: "")))
        let bundle = "a=group:BUNDLE v a\r\n"
        let bundled = offer(session: bundle, audio: "a=mid:a\r\n", video: "a=mid:v\r\n" + ice + mux)
        #expect(MediaNegotiation.usesICE(bundled))
        #expect(!MediaNegotiation.usesICE(.offer("a=ice-ufrag:abcd a=rtcp-mux")))
    }

    @Test(
        "A device that is bound to all addresses answers an offer without ICE from the one that reaches the peer",
        arguments: [(true, "127.0.0.1"), (false, "192.0.2.1")])
    func answersFromReachingAddress(isBoundToAll: Bool, address: String) throws {
        var generator = SeededGenerator(seed: 9)
        var ours = try MediaNegotiation.made(isBoundToAll: isBoundToAll, using: &generator) {
            $0.plainMedia = .accepted
        }
        let lines = [
            "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "c=IN IP4 127.0.0.1", "t=0 0", "m=audio 4000 RTP/AVP 111",
            "a=rtpmap:111 opus/48000/2", "",
        ]
        let offer = CallDescription.offer(lines.joined(separator: "\r\n"))
        let host = ours.hostToReach(for: offer)
        #expect(host?.host == (isBoundToAll ? "127.0.0.1" : nil))
        _ = try ours.receive(offer, reachedFrom: host)
        let answer = try #require(try ours.answer().0.sdp)
        #expect(answer.contains("c=IN IP4 \(address)\r\n"), "\(answer)")
    }

    @Test("Media may come from the host that the peer's description came from")
    func signalingSource() throws {
        var generator = SeededGenerator(seed: 9)
        let lines = [
            "v=0", "o=- 1 1 IN IP4 192.168.0.7", "s=-", "c=IN IP4 192.168.0.7", "t=0 0", "m=audio 4000 RTP/AVP 111",
            "a=rtpmap:111 opus/48000/2", "",
        ]
        let sdp = lines.joined(separator: "\r\n")
        let offers: [(CallDescription, String?)] = [
            (CallDescription(.offer(sdp), source: "203.0.113.5"), "203.0.113.5"), (.offer(sdp), nil),
        ]
        for (offer, host) in offers {
            var ours = try MediaNegotiation.made(using: &generator) { $0.plainMedia = .accepted }
            _ = try ours.receive(offer)
            let audio = try ours.answer().1
            let plan = try ours.plan(for: audio, audio: AudioBehaviour(source: .silence), start: .atOnce)
            #expect(plan.peer.signalingSource?.host == host)
        }
    }

    @Test("A later offer without ICE moves the call's media, and the hold of RFC 2543 moves it nowhere")
    func movesMedia() throws {
        var generator = SeededGenerator(seed: 9)
        var ours = try MediaNegotiation.made(using: &generator) { $0.plainMedia = .accepted }
        func agree(on host: String) throws -> (NegotiationChanges, NegotiatedAudio) {
            let lines = [
                "v=0", "o=- 1 1 IN IP4 192.0.2.7", "s=-", "c=IN IP4 \(host)", "t=0 0", "m=audio 4000 RTP/AVP 111",
                "a=rtpmap:111 opus/48000/2", "",
            ]
            let changes = try ours.receive(.offer(lines.joined(separator: "\r\n")))
            return (changes, try ours.answer().1)
        }
        _ = try agree(on: "192.0.2.7")
        let (changes, audio) = try agree(on: "192.0.2.8")
        #expect(changes == .address)
        let addresses = try #require(MediaNegotiation.addresses(of: audio))
        #expect(addresses.remote == SocketAddress(host: "192.0.2.8", port: 4_000))
        #expect(addresses.control == SocketAddress(host: "192.0.2.8", port: 4_001))
        let held = try agree(on: "0.0.0.0").1
        #expect(MediaNegotiation.addresses(of: held) == nil)
    }

    /// The offers in docs/protocol.md, by their names.
    private static func documentedOffers() throws -> [String: String] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/protocol.md"), encoding: .utf8)
        var offers: [String: String] = [:]
        for piece in page.components(separatedBy: "```sdp offer=").dropFirst() {
            let text = piece.components(separatedBy: "```")[0]
            let end = try #require(text.firstIndex(of: "\n"))
            offers[String(text[..<end])] = String(text[text.index(after: end)...])
        }
        return offers
    }

    @Test("Each offer in the protocol's page is answered, and without its keys, or rtcp-mux with ICE, it is not")
    func documentedOffersAreAnswered() throws {
        let offers = try Self.documentedOffers()
        #expect(offers.keys.sorted() == ["dtls", "plain", "sdes", "webrtc"])
        func answer(_ lines: [String]) throws -> String? {
            var ours = try Self.side(seed: 9) { $0.plainMedia = .accepted }
            let sdp = lines.joined(separator: "\n") + "\n"
            _ = try ours.receive(.offer(sdp))
            return try ours.answer().0.sdp
        }
        for (name, text) in offers {
            let lines = text.split(separator: "\n").map(String.init)
            let whole = try #require(try answer(lines), "\(name)")
            #expect(whole.contains("m=audio"), "\(name)")
            let needed = ["a=fingerprint", "a=crypto", "a=rtcp-mux"]
            for left in lines where needed.contains(where: left.hasPrefix) {
                let fewer = lines.filter { $0 != left }
                #expect(throws: (any Error).self, "\(name) without \(left)") { try answer(fewer) }
            }
        }
    }

    @Test("Plain RTP is refused unless the configuration allows it")
    func plainOffer() throws {
        let text = try #require(try Self.documentedOffers()["plain"])
        var ours = try Self.side(seed: 9)
        #expect(throws: (any Error).self) {
            _ = try ours.receive(.offer(text))
            _ = try ours.answer()
        }
    }

    /// Two that have agreed once.
    private static func pair() throws -> (inviter: MediaNegotiation, invitee: MediaNegotiation) {
        var (inviter, invitee) = (try side(seed: 1), try side(seed: 2))
        _ = try invitee.receive(try inviter.offer())
        let (answer, _) = try invitee.answer()
        _ = try inviter.accept(answer)
        return (inviter, invitee)
    }

    @Test("When two offers cross, the one that has yielded wants its restart again once the other is answered")
    func yieldsAndComesBack() throws {
        var (inviter, invitee) = try Self.pair()
        // The inviter's offer changes nothing of ICE; the invitee's restarts it.
        let kept = try inviter.offer()
        invitee.bring(Self.credentials(10), candidates: [])
        _ = try invitee.offer()
        #expect(invitee.hasOffered)
        invitee.yield()
        let changes = try invitee.receive(kept)
        let (answer, _) = try invitee.answer()
        #expect(!changes.contains(.ice))
        let (agreed, _) = try inviter.accept(answer)
        #expect(agreed.ice?.remote.usernameFragment != Self.credentials(10).usernameFragment)
        let isOwed = (invitee.takeOwedRestart(after: changes), invitee.takeOwedRestart(after: changes))
        #expect(isOwed == (true, false), "once")
        // And so it does.
        invitee.bring(Self.credentials(11), candidates: [])
        let again = try inviter.receive(try invitee.offer())
        #expect(again.contains(.ice))
        inviter.bring(Self.credentials(12), candidates: [])
        let (last, audio) = try inviter.answer()
        #expect(audio.ice?.remote.usernameFragment == Self.credentials(11).usernameFragment)
        let (_, final) = try invitee.accept(last)
        #expect(final.contains(.ice))
    }

    @Test("When both of two crossing offers restart ICE, one restart is enough")
    func bothRestart() throws {
        var (inviter, invitee) = try Self.pair()
        inviter.bring(Self.credentials(20), candidates: [])
        let kept = try inviter.offer()
        invitee.bring(Self.credentials(21), candidates: [])
        _ = try invitee.offer()
        invitee.yield()
        let changes = try invitee.receive(kept)
        #expect(changes.contains(.ice))
        invitee.bring(Self.credentials(22), candidates: [])
        _ = try invitee.answer()
        let isOwed = invitee.takeOwedRestart(after: changes)
        #expect(!isOwed)
    }

    @Test("An offer that is answered in peace owes nothing")
    func noCrossing() throws {
        var (inviter, invitee) = try Self.pair()
        let changes = try invitee.receive(try inviter.offer())
        _ = try invitee.answer()
        let isOwed = invitee.takeOwedRestart(after: changes)
        #expect(!isOwed)
    }

    @Test(
        "An offer with DTLS and without ICE is answered with DTLS, at an address of the call's own",
        arguments: [true, false])
    func directHandshake(multiplexes: Bool) throws {
        let fingerprint = Array(repeating: "AB", count: 32).joined(separator: ":")
        let offer = """
            v=0\r
            o=- 1 1 IN IP4 192.0.2.9\r
            s=-\r
            c=IN IP4 192.0.2.9\r
            t=0 0\r
            m=audio 4000 UDP/TLS/RTP/SAVP 96\r
            a=rtpmap:96 opus/48000/2\r
            a=fingerprint:sha-256 \(fingerprint)\r
            a=setup:actpass\r
            \(multiplexes ? "a=rtcp-mux" : "a=rtcp:4001")\r

            """
        var ours = try Self.side(seed: 4)
        _ = try ours.receive(.offer(offer))
        #expect(ours.needsDirectConnection)
        ours.receive(
            atOneOf: [
                try #require(SocketAddress(host: "::", port: 6_001)),
                try #require(SocketAddress(host: "0.0.0.0", port: 6_000)),
            ])
        let (answer, audio) = try ours.answer()
        let text = try #require(answer.sdp)
        #expect(text.contains("m=audio 6000 UDP/TLS/RTP/SAVP 96\r\n") && text.contains("c=IN IP4 192.0.2.1\r\n"))
        #expect(text.contains("a=setup:active\r\n") && text.contains("a=fingerprint:sha-256 "))
        #expect(!text.contains("a=ice-") && text.contains("a=rtcp-mux\r\n") == multiplexes)
        let plan = try ours.plan(
            for: audio, audio: AudioBehaviour(source: .silence), start: .withFirstPacket(noLaterThan: .seconds(1)))
        #expect(plan.start == .whenConnected && plan.peer.protection == .handshake)
        #expect(plan.peer.transport == .handshaken(hasControl: multiplexes))
        let remote = try #require(try ours.remote(for: audio))
        guard case .direct(let address) = remote.way else {
            Issue.record("the peer has no ICE")
            return
        }
        #expect(address.description == "192.0.2.9:4000" && remote.handshake?.role == .active)
    }

    @Test("Where keys would be read by others, a call without ICE offers DTLS, at an address of the call's own")
    func offeredHandshake() throws {
        func side(_ keysAllowed: Bool, _ plainMedia: MediaNegotiation.Settings.PlainMedia) throws -> MediaNegotiation {
            var generator = SeededGenerator(seed: 8)
            return try MediaNegotiation.made(keysAllowed: keysAllowed, using: &generator) {
                $0.offersWebRTC = false
                $0.plainMedia = plainMedia
            }
        }
        for plainMedia in [MediaNegotiation.Settings.PlainMedia.refused, .offered] {
            let ours = try side(true, plainMedia)
            #expect(!ours.offersHandshake && !ours.offersICE, "\(plainMedia)")
        }
        var caller = try side(false, .refused)
        #expect(caller.offersHandshake)
        caller.receive(atOneOf: [try #require(SocketAddress(host: "0.0.0.0", port: 6_000))])
        let offer = try caller.offer()
        let text = try #require(offer.sdp)
        #expect(text.contains("m=audio 6000 UDP/TLS/RTP/SAVP ") && text.contains("c=IN IP4 192.0.2.1\r\n"), "\(text)")
        #expect(!text.contains("a=ice-") && !text.contains("a=crypto:"), "\(text)")

        var callee = try side(false, .refused)
        _ = try callee.receive(offer)
        #expect(callee.needsDirectConnection)
        let (audio, _) = try caller.accept(try callee.answer().0)
        let remote = try #require(try caller.remote(for: audio))
        guard case .direct(let address) = remote.way else {
            Issue.record("the peer has no ICE")
            return
        }
        #expect(address.description == "192.0.2.1:5000" && remote.handshake?.role == .passive)
    }

    /// Our encoder's settings for a peer that offers Opus with these parameters.
    private static func encoder(
        _ parameters: String, _ lines: String = "", bandwidth: String = "b=X-YZ:1"
    ) throws -> EncoderSettings {
        try plan(parameters, lines, bandwidth: bandwidth).encoder
    }

    /// The same of the whole plan.
    private static func plan(
        _ parameters: String, _ lines: String, bandwidth: String, formats: String = "111"
    ) throws -> MediaCallPlan {
        let offer = """
            v=0\r
            o=- 1 1 IN IP4 192.0.2.9\r
            s=-\r
            c=IN IP4 192.0.2.9\r
            t=0 0\r
            m=audio 4000 RTP/AVP \(formats)\r
            \(bandwidth)\r
            a=rtpmap:111 opus/48000/2\r
            a=fmtp:111 \(parameters)\r
            \(lines)
            """
        var ours = try side(seed: 3) { $0.plainMedia = .accepted }
        _ = try ours.receive(.offer(offer))
        let (_, audio) = try ours.answer()
        return try ours.plan(for: audio, audio: AudioBehaviour(source: .silence), start: .atOnce)
    }

    @Test(
        "maxplaybackrate limits the band that is encoded (RFC 7587 §6.1)",
        arguments: [
            (8_000, EncoderSettings.Bandwidth.narrowband), (12_000, .mediumband), (16_000, .wideband),
            (24_000, .superwideband), (48_000, .fullband), (44_100, .superwideband), (11_025, .narrowband),
        ])
    func playbackRate(rate: Int, band: EncoderSettings.Bandwidth) throws {
        #expect(try Self.encoder("maxplaybackrate=\(rate)").maxBandwidth == band)
    }

    @Test("maxaveragebitrate caps what is sent, and never raises it")
    func bitrate() throws {
        #expect(try Self.encoder("maxaveragebitrate=20000").bitrateBps == 20_000)
        #expect(try Self.encoder("maxaveragebitrate=500000").bitrateBps == 40_000)
        #expect(try Self.encoder("maxaveragebitrate=100").bitrateBps == 6_000, "the least that Opus has")
    }

    @Test(
        "b=TIAS and b=AS cap what is sent (RFC 9429 §5.10), whichever of all limits is the lowest, down to Opus' least")
    func bandwidth() throws {
        #expect(try Self.encoder("minptime=10", bandwidth: "b=TIAS:24000").bitrateBps == 24_000)
        #expect(try Self.encoder("minptime=10", bandwidth: "b=TIAS:400000").bitrateBps == 40_000)
        #expect(try Self.encoder("maxaveragebitrate=20000", bandwidth: "b=TIAS:24000").bitrateBps == 20_000)
        #expect(try Self.encoder("maxaveragebitrate=28000", bandwidth: "b=TIAS:24000").bitrateBps == 24_000)
        #expect(try Self.encoder("minptime=10", bandwidth: "b=TIAS:500").bitrateBps == 6_000)
        // 5 % for RTCP, and 50 headers of 40 bytes; of longer packets there are fewer.
        #expect(try Self.encoder("minptime=10", bandwidth: "b=AS:40").bitrateBps == 22_000)
        #expect(try Self.encoder("ptime=40", bandwidth: "b=AS:40").bitrateBps == 30_000)
        #expect(try Self.encoder("minptime=10", bandwidth: "b=AS:8").bitrateBps == 6_000)
    }

    @Test("Frames are sent twice only where the peer's b= lines have room for that")
    func copies() throws {
        func isSent(_ bandwidth: String) throws -> Bool? {
            try Self.plan("minptime=10", "a=rtpmap:63 red/48000/2\r\n", bandwidth: bandwidth, formats: "111 63")
                .peer.redundancy?.isSent
        }
        #expect(try isSent("b=CT:1") == true)
        #expect(try isSent("b=TIAS:82000") == true)
        #expect(try isSent("b=TIAS:81999") == false)
    }

    @Test("A later offer changes the cap, and takes it away")
    func laterBandwidth() throws {
        var (inviter, invitee) = try Self.pair()
        func next(_ bandwidth: String) throws -> (NegotiationChanges, Int) {
            let offer = try inviter.offer()
            let text = try #require(offer.sdp).replacing("a=mid:0\r\n", with: "a=mid:0\r\n\(bandwidth)")
            let changes = try invitee.receive(.offer(text))
            let (answer, audio) = try invitee.answer()
            _ = try inviter.accept(answer)
            let plan = try invitee.plan(for: audio, audio: AudioBehaviour(source: .silence), start: .atOnce)
            return (changes, plan.encoder.bitrateBps)
        }
        #expect(try next("b=TIAS:16000\r\n") == (.formats, 16_000))
        #expect(try next("b=TIAS:16000\r\n") == ([], 16_000))
        #expect(try next("") == (.formats, 40_000))
    }

    @Test("An answer's b= lines cap what the offerer sends")
    func answeredBandwidth() throws {
        var (inviter, invitee) = (try Self.side(seed: 1), try Self.side(seed: 2))
        _ = try invitee.receive(try inviter.offer())
        let text = try #require(try invitee.answer().0.sdp) + "b=AS:30\r\n"
        let (audio, _) = try inviter.accept(.answer(text))
        let plan = try inviter.plan(for: audio, audio: AudioBehaviour(source: .silence), start: .atOnce)
        #expect(plan.encoder.bitrateBps == 12_500)
    }

    @Test("cbr, useinbandfec and usedtx bind our encoder as the peer requests")
    func switches() throws {
        #expect(try Self.encoder("cbr=1").constantBitrate)
        #expect(try !Self.encoder("cbr=0").constantBitrate)
        #expect(try Self.encoder("useinbandfec=1").fec)
        #expect(try !Self.encoder("useinbandfec=0").fec)
        #expect(try Self.encoder("usedtx=1").dtx)
        #expect(try !Self.encoder("usedtx=0").dtx)
    }

    @Test("ptime, minptime and maxptime, in the line of Opus or in lines of their own, choose the length of packets")
    func packetTime() throws {
        #expect(try Self.encoder("ptime=40").frameDuration == .fortyMilliseconds)
        #expect(try Self.encoder("minptime=10", "a=ptime:60\r\n").frameDuration == .sixtyMilliseconds)
        #expect(try Self.encoder("minptime=40").frameDuration == .fortyMilliseconds)
        #expect(try Self.encoder("maxptime=10").frameDuration == .tenMilliseconds)
        #expect(try Self.encoder("minptime=10", "a=ptime:60\r\na=maxptime:20\r\n").frameDuration == .twentyMilliseconds)
    }

    @Test("Peers that want stereo, or announce it or a narrower capture, get and send one channel as they like")
    func channels() throws {
        let settings = try Self.encoder("stereo=1;sprop-stereo=1;sprop-maxcapturerate=16000")
        #expect(settings.channels == 1 && settings.maxBandwidth == .fullband)
    }
}
