import CallAgent
import CallControl
import CallMedia
import MediaEngine
import SIP
import TestSupport
import Testing

@Suite("What a device does in calls by SIP, on real sockets", .timeLimit(.minutes(2)))
struct SIPCallTests {
    private static let plain = "media: { offers: plain, allow_plain_rtp: true, codecs: [opus, pcmu, pcma] }"
    private static let answering = "answer: { mode: auto }"

    private func digits(_ device: Handheld, _ count: Int) async throws -> String {
        var keys = ""
        while keys.count < count, let event = await device.next() {
            if case .digit(_, let key, _) = event { keys.append(key) }
        }
        return keys
    }

    @Test(
        "RFC 3261 §14.2: A re-INVITE that cannot be taken is refused, and the next one is judged by itself",
        arguments: [
            SIPTelephone.description("m=image 4000 udptl t38\r\n", version: 2),
            SIPTelephone.description("m=audio 0 RTP/AVP 0\r\n", version: 2),
            SIPTelephone.description("m=audio 4000 RTP/AVP 18\r\n", version: 2), "nothing that can be read",
        ])
    func refusedOffer(_ offer: String) async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, Self.answering)
        var call = try await telephone.call("one")
        #expect(try await telephone.request("INVITE", in: &call, body: offer).status == 488)
        for version in 3...4 {
            let hold = SIPTelephone.description(SIPTelephone.pcmu + "a=sendonly\r\n", version: version)
            #expect(try await telephone.request("INVITE", in: &call, body: hold).status == 200)
        }
        await device.device.shutDown()
    }

    @Test("Each call without ICE is described at a port of its own, which is another than that of the call before")
    func ownPorts() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, Self.answering)
        func port(_ call: SIPTelephone.Call) -> Substring? {
            call.body.split(separator: "m=audio ").last?.split(separator: " ").first
        }
        var ports: [Substring] = []
        for number in 1...4 {
            var call = try await telephone.call("call-\(number)")
            ports.append(try #require(port(call)))
            // A later answer names the same port.
            let hold = SIPTelephone.description(SIPTelephone.pcmu + "a=sendonly\r\n", version: 2)
            let answer = String(
                decoding: try await telephone.request("INVITE", in: &call, body: hold).body, as: UTF8.self)
            #expect(answer.contains("m=audio \(ports[number - 1]) "))
            if number != 2 { #expect(try await telephone.request("BYE", in: &call).status == 200) }
        }
        #expect(Set(ports).count == 4)
        await device.device.shutDown()
    }

    @Test("CALL-2: A telephone that sends no sound has an established call from its ACK on, and not before")
    func silentTelephone() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, Self.answering)
        var call = try await telephone.call("one", acknowledges: false)
        let id = try await device.incoming()
        while case let event? = await device.next() { if case .answered = event { break } }
        // A question that is answered in the call comes after whatever the media has found out.
        try await until { await device.device.mediaReport(on: id)?.peer.packetsSent ?? 0 > 0 }
        #expect(await device.device.status.calls.first?.progress == .connecting)
        try telephone.acknowledge(call)
        _ = try await device.established()
        try await telephone.request("BYE", in: &call)
        let record = try await device.ended().record
        #expect(record.reason == .completed && record.setUpTime == nil && record.duration > .zero)
        await device.device.shutDown()
    }

    /// Packets that the device has sent in a call after some more frames.
    private func packets(_ device: Handheld, _ call: CallID, frames: Int) async throws -> Int {
        let before = await device.device.mediaReport(on: call)?.call.framesRun ?? 0
        try await until { await device.device.mediaReport(on: call)?.call.framesRun ?? 0 >= before + frames }
        return await device.device.mediaReport(on: call)?.peer.packetsSent ?? 0
    }

    @Test(
        "Little is sent to where a caller's description says before the ACK, and to a stranger until something comes from there",
        arguments: [("server", "127.0.0.1"), ("anybody", "127.0.0.1"), ("anybody", "127.0.0.66")])
    func soundLimit(callers: String, host: String) async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, Self.answering, callsFrom: callers)
        let offer = SIPTelephone.description(SIPTelephone.pcmu).replacing(
            "c=IN IP4 127.0.0.1", with: "c=IN IP4 \(host)")
        let call = try await telephone.call("one", offer: offer, acknowledges: false)
        let id = try await device.incoming()
        #expect(try await packets(device, id, frames: 40) == 12)
        try telephone.acknowledge(call)
        _ = try await device.established()
        let sent = try await packets(device, id, frames: 40)
        // The ACK shows that our answer has arrived at its host, which is not where the last one wants sound.
        if host == "127.0.0.1" { #expect(sent >= 12 + 30) } else { #expect(sent <= 13) }
        await device.device.shutDown()
    }

    @Test("CALL-2: A telephone that is called and sends no sound has an established call once it has answered")
    func calledSilentTelephone() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, Self.answering)
        let id = await device.device.call("carol")
        let invite = try await telephone.request(.invite)
        telephone.answer(200, invite, body: SIPTelephone.description(SIPTelephone.pcmu))
        _ = try await device.established()
        await device.device.hangUp(id)
        let record = try await device.ended().record
        #expect(record.reason == .completed && record.setUpTime == nil && record.establishedAfter != nil)
        await device.device.shutDown()
    }

    @Test("Keys by INFO are the same event as keys in the media, whichever type carries them")
    func keysByInfo() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, Self.answering)
        var call = try await telephone.call("one")
        for (type, body) in [
            ("application/dtmf-relay", "Signal=7\r\nDuration=160\r\n"), ("application/dtmf", "8"),
            ("application/dtmf", "10"), ("application/dtmf-relay", "Signal= #\r\n"),
        ] {
            #expect(
                try await telephone.request("INFO", in: &call, body: body, "Content-Type: \(type)").status == 200)
        }
        #expect(try await digits(device, 4) == "78*#")
        await device.device.shutDown()
    }

    @Test("Keys go by INFO, one after the other, to a peer that takes no telephone events")
    func pressedByInfo() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, Self.answering)
        _ = try await telephone.call("one")
        let call = try await device.incoming()
        while case let event? = await device.next() { if case .answered = event { break } }
        await #expect(throws: DigitError.self) { try await device.device.press("1x", on: call) }
        try await device.device.press("1a!", on: call)
        _ = try await telephone.request(.info, after: 2)
        let infos = telephone.requests(.info)
        #expect(infos.map { $0.headers["Content-Type"] ?? "" } == Array(repeating: "application/dtmf-relay", count: 3))
        let signals = infos.map { String(decoding: $0.body, as: UTF8.self).split(separator: "\r\n").first ?? "" }
        #expect(signals == ["Signal=1", "Signal=A", "Signal=16"])
        await device.device.shutDown()
    }

    @Test("RFC 3261 §14.2: A re-INVITE without an offer is offered every codec, and the peer's answer counts")
    func allCodecs() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.plain, Self.answering)
        var call = try await telephone.call("one")
        #expect(call.body.contains("PCMU") && !call.body.contains("opus"))
        let answer = SIPTelephone.description("m=audio 9 RTP/AVP 8\r\na=recvonly\r\n", version: 2)
        let offer = String(
            decoding: try await telephone.request("INVITE", in: &call, acknowledging: answer).body, as: UTF8.self)
        for codec in ["opus/48000", "PCMU/8000", "PCMA/8000"] { #expect(offer.contains(codec)) }
        #expect(offer.contains("RTP/AVP ") && offer.contains("a=sendrecv"))
        // The codec of the ACK's answer is the one in use, which an offer that has several keeps first.
        let later = SIPTelephone.description("m=audio 9 RTP/AVP 8\r\n", version: 3)
        #expect(try await telephone.request("INVITE", in: &call, body: later).status == 200)
        await device.device.shutDown()
    }

    @Test(
        "A suite with a short tag is taken if it is the only one, and a location beside the description is passed over")
    func telephoneHabits() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device("media: { offers: sdes }", Self.answering)
        let key = "inline:NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj"
        let offer = SIPTelephone.description("m=audio 9 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_32 \(key)\r\n")
        let call = try await telephone.call("one", offer: offer)
        #expect(call.body.contains("a=crypto:1 AES_CM_128_HMAC_SHA1_32 "))
        let location = """
            --x\r\nContent-Type: application/pidf+xml\r\n\r\n<presence/>\r\n--x\r\nContent-Type: application/sdp\r\n\r\n\
            \(offer)\r\n--x--\r\n
            """
        let second = try await telephone.call("two", offer: location, "Content-Type: multipart/mixed;boundary=x")
        #expect(second.body.contains("a=crypto:1 AES_CM_128_HMAC_SHA1_32 "))
        await device.device.shutDown()
    }
}
