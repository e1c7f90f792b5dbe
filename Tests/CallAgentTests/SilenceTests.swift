import CallAgent
import CallControl
import CallMedia
import SIP
import TestSupport
import Testing

@Suite("Peers that vanish from calls of a device, on real sockets", .timeLimit(.minutes(2)))
struct SilenceTests {
    private static let media =
        "media: { offers: plain, allow_plain_rtp: true, codecs: [pcmu], silence_timeout_s: 0.3 }"
    /// The telephone has put the device on hold: nothing is expected from it.
    private static let hold = SIPTelephone.description(SIPTelephone.pcmu + "a=recvonly\r\n")

    @Test("CALL-4: A device with six calls whose callers do not know them any more is free for six others")
    func places() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(
            Self.media, "answer: { mode: auto, max_calls: 6 }", "behaviour: { source: silence }")
        for number in 1...6 { _ = try await telephone.call("call-\(number)", offer: Self.hold) }
        await #expect(throws: SIPTelephone.Refused.self) { try await telephone.call("too-many", offer: Self.hold) }
        telephone.answerProbes(with: 481)
        for _ in 1...7 {
            let record = try await device.ended().record
            guard record.answeredAfter != nil else { continue }
            #expect(record.reason == .connectionLost && record.endedBy == .neither)
        }
        _ = try await telephone.request(.bye, after: 5)
        telephone.answerProbes(with: 200)
        for number in 1...6 { _ = try await telephone.call("other-\(number)", offer: Self.hold) }
        await device.device.shutDown()
    }

    @Test("CALL-4: A telephone on hold that answers probes keeps its call, until it does not know the call any more")
    func answering() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(Self.media, "answer: { mode: auto }", "behaviour: { source: silence }")
        telephone.answerProbes(with: 405)
        _ = try await telephone.call("one", offer: Self.hold)
        _ = try await telephone.request(.options, after: 3)
        #expect(telephone.requests(.bye).isEmpty)
        telephone.answerProbes(with: 481)
        let record = try await device.ended().record
        #expect(record.reason == .connectionLost && record.duration > .zero)
        await device.device.shutDown()
    }

    @Test("A stranger whose sound has moved gets it without a limit once the host that it goes to has answered a probe")
    func probedStranger() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(
            Self.media, "answer: { mode: auto }", "behaviour: { source: tone }", callsFrom: "anybody")
        var call = try await telephone.call("one")
        // Nothing vouches for a host that only a description names, nor for the first one after it.
        for (version, host) in [(2, "127.0.0.2"), (3, "127.0.0.1")] {
            let offer = SIPTelephone.description(SIPTelephone.pcmu, version: version)
            let moved = offer.replacing("c=IN IP4 127.0.0.1", with: "c=IN IP4 \(host)")
            #expect(try await telephone.request("INVITE", in: &call, body: moved).status == 200)
        }
        let id = try #require(await device.device.status.calls.first?.id)
        _ = try await telephone.request(.options)
        telephone.answerProbes(with: 200)
        let before = try #require(await device.device.mediaReport(on: id)).peer.packetsSent
        // Until it is lifted, the limit allows eleven, and one more in five seconds.
        try await until { await device.device.mediaReport(on: id)?.peer.packetsSent ?? 0 > before + 50 }
        await device.device.shutDown()
    }

    @Test("With silence_timeout_s: 0 no telephone is probed")
    func off() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let device = try await telephone.device(
            Self.media.replacing("0.3", with: "0"), "answer: { mode: auto }",
            "behaviour: { source: silence, max_call_seconds: 1 }")
        _ = try await telephone.call("one", offer: Self.hold)
        let record = try await device.ended().record
        #expect(record.hangUpCause == .maximumDuration && telephone.requests(.options).isEmpty)
        await device.device.shutDown()
    }

    /// Calls without ICE between devices of an exchange.
    private func plain(_ configuration: inout DeviceConfiguration) {
        configuration.media.offers = .plain
        configuration.media.allowsPlainMedia = true
        configuration.media.silenceTimeout = .milliseconds(300)
        configuration.behaviour.source = .silence
    }

    @Test("CALL-4: A device that was started again hangs up the call that it does not know, when its peer probes it")
    func startedAgain() async throws {
        let site = try await Site()
        let media = try site.media(plain)
        let answering = AnswerPolicy(manner: .answer(after: .zero))
        let device = try await site.device("echo", named: "device", answer: answering, sharing: media, plain)
        let caller = try await site.device("caller", named: "mobile", plain)
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.established()
        // The process is killed: its media stops, and another one takes the place of its connection.
        await media.close()
        let again = try await site.device("echo", named: "device", answer: answering, plain)
        let record = try await caller.ended().record
        #expect(record.reason == .connectionLost && record.endedBy == .remote)
        try await site.close(caller, again, device)
    }

    @Test("CALL-4: At an exchange a peer that is connected, and sends nothing, keeps its call")
    func connectedAndSilent() async throws {
        let site = try await Site()
        let media = try site.media(plain)
        let answering = AnswerPolicy(manner: .answer(after: .zero))
        let device = try await site.device("echo", named: "device", answer: answering, sharing: media, plain)
        let caller = try await site.device("caller", named: "mobile") {
            plain(&$0)
            $0.behaviour.maximumDuration = .seconds(2)
        }
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.established()
        await media.close()
        let record = try await caller.ended().record
        #expect(record.hangUpCause == .maximumDuration, "six probes did not end it")
        try await site.close(caller, device)
    }
}
