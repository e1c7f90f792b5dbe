import CallAgent
import CallControl
import Foundation
import SIP
import TestSupport
import Testing

/// What nobody does on purpose: a telephone and the user of a device do anything at any time, in random order.
///
/// Parsers have fuzz targets of their own. Here all messages are legal, or nearly so, and the state in which they come is what no
/// test by hand has: a call that is replaced while it is replaced, an offer in a call that was cancelled, a transfer of what is
/// over. A fault ends the process, or leaves a call that never goes away, or a device that takes no other.
///
/// `HANDSET_WALKS` is the number of walks (6), and `HANDSET_WALK_SEED` the first one's seed.
@Suite("A device in calls in which anything happens at any time", .timeLimit(.minutes(5)))
struct RandomWalkTests {
    private static let environment = ProcessInfo.processInfo.environment
    static let seeds: [UInt64] = {
        let first = environment["HANDSET_WALK_SEED"].flatMap { UInt64($0) } ?? 1
        return (0..<(environment["HANDSET_WALKS"].flatMap { UInt64($0) } ?? 6)).map { first + $0 }
    }()

    @Test("Whatever happened, all calls end, and the next one is answered", arguments: seeds)
    func walk(seed: UInt64) async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        let mode = seed.isMultiple(of: 3) ? "ring" : "auto"
        let device = try await telephone.device(
            "media: { offers: \(seed.isMultiple(of: 2) ? "sdes" : "plain"), allow_plain_rtp: true }",
            "answer: { mode: \(mode), max_calls: 8, transfers: service, delay_ms: \(seed % 5 * 20) }")
        // Nobody else reads the events, so that they pile up and are no brake.
        var walk = Walk(telephone: telephone, device: device.device, seed: seed)
        for _ in 0..<300 { try await walk.step() }
        try await walk.end()
        // What still comes in may take places for a moment.
        var tries = 0
        while mode == "auto" {
            tries += 1
            try Task.checkCancellation()
            guard var call = try? await telephone.call("last-\(seed)-\(tries)") else {
                try await walk.end()
                continue
            }
            #expect(try await telephone.request("BYE", in: &call).status == 200)
            break
        }
        await device.device.shutDown()
    }
}

/// One walk. Each step is drawn from the seed; the device's threads take their own time.
private struct Walk {
    private let telephone: SIPTelephone
    private let device: Device
    private var random: SeededGenerator
    /// The telephone's calls, and how often each has sent a request.
    private var calls: [(id: String, sequence: Int)] = []
    private var answered = 0
    private let seed: UInt64

    init(telephone: SIPTelephone, device: Device, seed: UInt64) {
        (self.telephone, self.device, self.seed) = (telephone, device, seed)
        random = SeededGenerator(seed: seed)
    }

    mutating func step() async throws {
        switch random.next() % 12 {
        case 0, 1: try invite()
        case 2...5: try request()
        case 6, 7: answerDevice()
        case 8...10: await act()
        default: try await Task.sleep(for: .milliseconds(Int(random.next() % 30)))
        }
    }

    /// Everybody hangs up.
    mutating func end() async throws {
        for call in await device.status.calls { await device.hangUp(call.id) }
        for place in calls.indices { try post("BYE", at: place) }
        while answered < telephone.requestsOfDevice.count { answerDevice(with: 200) }
        try await until {
            answerDevice(with: 487)
            let left = await device.status.calls
            for call in left { await device.hangUp(call.id) }
            return left.isEmpty
        }
    }

    // MARK: The telephone

    private mutating func invite() throws {
        calls.append(("walk-\(seed)-\(calls.count)", 1))
        var headers: [String] = []
        if !oneIn(3), let other = calls.dropLast().randomElement(using: &random), let to = telephone.tagged(other.id),
            let tag = to.split(separator: "tag=").last
        {
            headers.append(
                "Replaces: \(other.id);to-tag=\(tag);from-tag=peer-\(other.id)\(oneIn(4) ? ";early-only" : "")")
        }
        if oneIn(4) { headers.append("Supported: 100rel, timer, replaces") }
        if oneIn(6) { headers.append("Session-Expires: 90;refresher=uac") }
        try telephone.post(
            "INVITE", 1, of: calls[calls.count - 1].id, to: "<sip:alice@sip.test>", body: body(), headers)
    }

    private mutating func request() throws {
        guard let place = calls.indices.randomElement(using: &random) else { return }
        let call = calls[place]
        switch random.next() % 13 {
        case 0, 1, 2: try telephone.post("ACK", call.sequence, of: call.id, body: oneIn(4) ? body() : "")
        case 3, 4: try post("INVITE", at: place, body: body())
        case 5: try post("BYE", at: place)
        case 6: try telephone.post("CANCEL", 1, of: call.id, to: "<sip:alice@sip.test>", branch: "INVITE")
        case 7:
            let target = [
                "<sip:carol@sip.test>", "<sip:nobody@sip.test>", "sip:carol@sip.test", "<tel:+4930123>", replacing(),
            ]
            try post("REFER", at: place, ["Refer-To: \(target.randomElement(using: &random) ?? "")"])
        case 8:
            let state =
                ["SIP/2.0 100 Trying", "SIP/2.0 200 OK", "SIP/2.0 603 Decline", "what"].randomElement(using: &random)
                ?? ""
            try post(
                "NOTIFY", at: place, body: state,
                [
                    "Event: refer", "Subscription-State: \(oneIn(2) ? "active" : "terminated")",
                    "Content-Type: message/sipfrag",
                ])
        case 9: try post("INFO", at: place, body: "Signal=5\r\n", ["Content-Type: application/dtmf-relay"])
        case 10: try post("OPTIONS", at: place)
        case 11: try post("UPDATE", at: place, body: oneIn(2) ? body() : "")
        default: try post("PRACK", at: place, ["RAck: \(random.next() % 3 + 1) \(call.sequence) INVITE"])
        }
    }

    private mutating func post(_ method: String, at place: Int, body: String = "", _ headers: [String] = []) throws {
        calls[place].sequence += 1
        try telephone.post(method, calls[place].sequence, of: calls[place].id, body: body, headers)
    }

    private mutating func replacing() -> String {
        guard let other = calls.randomElement(using: &random) else { return "<sip:carol@sip.test>" }
        return "<sip:carol@sip.test?Replaces=\(other.id)%3Bto-tag%3Da%3Bfrom-tag%3Db>"
    }

    /// Answers the device's next request, or one of before again.
    private mutating func answerDevice(with status: Int? = nil) {
        let requests = telephone.requestsOfDevice
        guard !requests.isEmpty else { return }
        let place =
            status == nil && oneIn(5) ? Int(random.next() % UInt64(requests.count)) : min(answered, requests.count - 1)
        answered = max(answered, place + 1)
        let request = requests[place]
        guard request.method != .ack, request.method != .register else { return }
        let drawn =
            [100, 180, 183, 200, 200, 202, 302, 404, 481, 486, 491, 500, 503].randomElement(using: &random) ?? 200
        telephone.answer(status ?? drawn, request, body: request.method == .invite && !oneIn(5) ? body() : "")
    }

    private mutating func body() -> String {
        let lines =
            [
                "m=audio 9 RTP/AVP 0\r\n", "m=audio 9 RTP/AVP 0\r\n", "m=audio 9 RTP/AVP 0\r\na=sendonly\r\n",
                "m=audio 9 RTP/AVP 96 0 101\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:101 telephone-event/8000\r\n",
                "m=audio 9 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj\r\n",
                "m=audio 0 RTP/AVP 0\r\n", "m=image 4000 udptl t38\r\n", "m=audio 9 RTP/AVP 18\r\n",
                "m=audio 9 RTP/AVP 0\r\nm=video 9 RTP/AVP 99\r\n", "",
            ].randomElement(using: &random) ?? ""
        if lines.isEmpty { return oneIn(2) ? "" : "nothing that can be read" }
        return SIPTelephone.description(lines, version: Int(random.next() % 5 + 1))
    }

    // MARK: The device's user

    private mutating func act() async {
        let known = await device.status.calls.map(\.id)
        guard let call = known.randomElement(using: &random) else {
            _ = await device.call("carol")
            return
        }
        switch random.next() % 16 {
        case 0: _ = await device.call("carol")
        case 1: await device.hangUp(call)
        case 2: await device.answer(call)
        case 3: await device.reject(call, oneIn(2) ? .busy : .declined)
        case 4: try? await device.transfer(call, to: "carol")
        case 5: try? await device.transfer(call, to: "carol", replacing: known.randomElement(using: &random))
        case 6, 7: try? await device.press("12#", on: call)
        case 8: try? await device.play("/usr/share/sounds/alsa/Front_Center.wav", on: call)
        case 9: try? await device.stopPlaying(on: call)
        case 10: _ = try? await device.record(call)
        case 11: _ = try? await device.stopRecording(call)
        case 12: try? await device.attach(to: call)
        case 13: try? await device.detach(from: call)
        case 14: await device.networkChanged()
        default: _ = try? await device.attachPort(to: call)
        }
    }

    private mutating func oneIn(_ count: UInt64) -> Bool { random.next().isMultiple(of: count) }
}
