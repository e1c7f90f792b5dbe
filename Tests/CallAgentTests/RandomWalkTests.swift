import CallAgent
import CallControl
import Foundation
import SIP
import SignalingClient
import Synchronization
import TestSupport
import Testing

/// What nobody does on purpose: a telephone, or a device of an exchange, and the user of a device do anything at any time, in random
/// order.
///
/// Parsers have fuzz targets of their own. Here all messages are legal, or nearly so, and the state in which they come is what no
/// test by hand has: a call that is replaced while it is replaced, an offer in a call that was cancelled, a transfer of what is
/// over. A fault ends the process, or leaves a call that never goes away, or a device that takes no other.
///
/// `HANDSET_WALKS` is the number of walks (6), and `HANDSET_WALK_SEED` the first one's seed. One walk at a time: the calls of twelve
/// devices keep the processors of a small machine so busy that each answers ten messages a second.
@Suite("A device in calls in which anything happens at any time", .timeLimit(.minutes(5)))
struct RandomWalkTests {
    private static let environment = ProcessInfo.processInfo.environment
    static let seeds: [UInt64] = {
        let first = environment["HANDSET_WALK_SEED"].flatMap { UInt64($0) } ?? 1
        return (0..<(environment["HANDSET_WALKS"].flatMap { UInt64($0) } ?? 6)).map { first + $0 }
    }()

    @Test("Whatever happened, all calls end, and the next one is answered", .serialized, arguments: seeds)
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

    @Test(
        "At an exchange as well all calls end, whatever happened, and the next one is answered", .serialized,
        arguments: seeds)
    func exchange(seed: UInt64) async throws {
        let site = try await Site(users: ["alice", "bob", "carol"])
        let rings = seed.isMultiple(of: 3)
        let delay = Duration.milliseconds(Int(seed % 5 * 20))
        let answer = AnswerPolicy(manner: rings ? .ring : .answer(after: delay), callLimit: .calls(8))
        let device = try await site.device("alice", named: "desk", answer: answer) {
            $0.media.offers = [.webRTC, .plain, .sdes][Int(seed % 3)]
            $0.media.allowsPlainMedia = true
        }
        let (bob, carol) = (try site.service("bob", named: "any"), try site.service("carol", named: "any"))
        var walk = try await ExchangeWalk(bob, carol, device: device.device, seed: seed)
        for _ in 0..<300 { try await walk.step() }
        try await walk.end()
        if !rings {
            let caller = try await site.device("carol", named: "mobile") { $0.media.allowsPlainMedia = true }
            let call = await caller.device.call("alice")
            _ = try await caller.established()
            await caller.device.hangUp(call)
            await caller.device.shutDown()
        }
        try await site.close(device)
    }
}

/// What comes out of the drawing of a walk, whatever it signals over.
private struct Draw {
    var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func oneIn(_ count: UInt64) -> Bool { random.next().isMultiple(of: count) }

    mutating func pick<Element>(_ all: [Element]) -> Element { all[Int(random.next() % UInt64(all.count))] }

    /// A description, nearly always a legal one.
    mutating func body() -> String {
        let ice = "a=ice-ufrag:\(pick(["abcd", "efgh"]))\r\na=ice-pwd:0123456789abcdef01234567\r\na=rtcp-mux\r\n"
        let candidate = "a=candidate:1 1 udp 2130706431 127.0.0.1 9 typ host\r\n"
        let fingerprint = "a=fingerprint:sha-256 \(Array(repeating: "AB", count: 32).joined(separator: ":"))\r\n"
        let dtls = fingerprint + "a=setup:\(pick(["actpass", "active", "passive"]))\r\n"
        let opus = "a=rtpmap:111 opus/48000/2\r\n"
        let key = "NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj"
        let lines = pick([
            "m=audio 9 RTP/AVP 0\r\n", "m=audio 9 RTP/AVP 0\r\n", "m=audio 9 RTP/AVP 0\r\na=sendonly\r\n",
            "m=audio 9 RTP/AVP 96 0 101\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:101 telephone-event/8000\r\n",
            "m=audio 9 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:\(key)\r\n",
            "m=audio 0 RTP/AVP 0\r\n", "m=image 4000 udptl t38\r\n", "m=audio 9 RTP/AVP 18\r\n",
            "m=audio 9 RTP/AVP 0\r\nm=video 9 RTP/AVP 99\r\n", "",
            "m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r\na=mid:0\r\n" + opus + ice + dtls + candidate,
            "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-options:trickle\r\n" + opus + ice + dtls,
            "m=audio 9 UDP/TLS/RTP/SAVP 0\r\n" + dtls, "m=audio 9 RTP/AVP 0\r\n" + ice + candidate,
        ])
        if lines.isEmpty { return oneIn(2) ? "" : "nothing that can be read" }
        return SIPTelephone.description(lines, version: Int(random.next() % 5 + 1))
    }

    /// A datagram that may come where media is expected.
    mutating func datagram() -> [UInt8] {
        func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        // An SSRC of a few, and numbers that are near each other or not.
        let source: [UInt8] = [0, 0, 0, UInt8(random.next() % 4)]
        let number: [UInt8] = oneIn(4) ? bytes(6) : [0, UInt8(random.next() % 64), 0, 0, 4, UInt8(random.next() % 255)]
        return switch random.next() % 8 {
        case 0...3: [0x80, pick([0, 0x80, 96, 111, 13])] + number + source + bytes(160)
        case 4: [0x80, pick([101, 0x80 | 101])] + number + source + [UInt8(random.next() % 17), 10, 0, 160]
        case 5: [0x80, pick([200, 201, 203]), 0, 1] + source
        case 6: [0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42] + bytes(12)
        default: bytes(Int(random.next() % 200))
        }
    }

    /// Something that the user of a device does.
    mutating func act(on device: Device, calling whom: UserID) async {
        let known = await device.status.calls.map(\.id)
        guard let call = known.randomElement(using: &random) else {
            _ = await device.call(whom)
            return
        }
        switch random.next() % 16 {
        case 0: _ = await device.call(whom)
        case 1: await device.hangUp(call)
        case 2: await device.answer(call)
        case 3: await device.reject(call, oneIn(2) ? .busy : .declined)
        case 4: try? await device.transfer(call, to: whom)
        case 5: try? await device.transfer(call, to: whom, replacing: known.randomElement(using: &random))
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
}

/// One walk at an exchange: the peers are their signaling alone, and say what no device would.
private struct ExchangeWalk {
    /// What the peer knows of.
    private final class Known: Sendable {
        private let invites = Mutex<[InviteID]>([])
        func add(_ id: InviteID) { invites.withLock { $0.append(id) } }
        var all: [InviteID] { invites.withLock { $0 } }
    }

    private let service: HandsetService
    /// Of another user, who is asked to call the device in place of the peer.
    private let other: HandsetService
    private let device: Device
    private let known = Known()
    private let listening: Task<Void, Never>
    private var draw: Draw
    private var sent: UInt64 = 0

    init(_ service: HandsetService, _ other: HandsetService, device: Device, seed: UInt64) async throws {
        (self.service, self.other, self.device) = (service, other, device)
        draw = Draw(seed: seed)
        listening = Task { [known] in
            for await event in service.events {
                if case .inviteReceived(let invite) = event { known.add(invite.id) }
            }
        }
        try await service.connect()
        try await other.connect()
    }

    mutating func step() async throws {
        switch draw.random.next() % 14 {
        case 0, 1: await invite()
        case 2...4: try? await answer()
        case 5...7: try? await signal()
        case 8, 9: try? await transfer()
        case 10...12: await draw.act(on: device, calling: "bob")
        default: try await Task.sleep(for: .milliseconds(Int(draw.random.next() % 30)))
        }
    }

    /// Everybody hangs up.
    mutating func end() async throws {
        try await until {
            for call in await device.status.calls { await device.hangUp(call.id) }
            for id in known.all {
                for service in [service, other] {
                    try? await service.hangUp(CallHangUp(invite: id, reason: .completed, duration: .zero))
                }
                try? await service.cancel(id, .application([:]))
                try? await service.reject(id, InviteRejection(.declined))
            }
            return await device.status.calls.isEmpty
        }
        await service.disconnect()
        await other.disconnect()
        listening.cancel()
    }

    private func description(_ type: String, _ sdp: String) -> JSONValue {
        sdp.isEmpty ? [:] : ["type": .string(type), "sdp": .string(sdp)]
    }

    private mutating func invite() async {
        sent += 1
        var data: [String: JSONValue] = ["offer": description("offer", draw.body())]
        if draw.oneIn(6) { data["offer"] = ["type": "wanted"] }
        let options = InviteOptions(
            to: "alice", data: .object(data), timeToLive: .seconds(Int(draw.random.next() % 3)),
            idempotencyKey: IdempotencyKey(ours: "walk-\(sent)"))
        if let invite = try? await service.invite(options) { known.add(invite.id) }
    }

    /// The peer asks the other user to call the device, in place of one of the peer's calls or in addition to it.
    private mutating func transfer() async throws {
        let replaced = draw.oneIn(4) ? nil : known.all.randomElement(using: &draw.random)
        sent += 1
        let offer = description("offer", SIPTelephone.description(SIPTelephone.pcmu))
        let asking = try await service.invite(
            InviteOptions(
                to: "carol", data: ["offer": offer], timeToLive: .seconds(2),
                idempotencyKey: IdempotencyKey(ours: "asking-\(sent)")))
        known.add(asking.id)
        try await other.accept(asking.id, .call(.answer("v=0")))
        let request = CallTransfer.Request(target: "alice", replaces: replaced)
        try await service.send(CallSignal(invite: asking.id, .transfer(request)))
        var options = InviteOptions(
            to: "alice", data: ["offer": description("offer", draw.body())], timeToLive: .seconds(2),
            idempotencyKey: IdempotencyKey(ours: "placed-\(sent)"))
        options.transfer = CallTransfer.Origin(invite: asking.id, replaces: replaced)
        let placed = try await other.invite(options)
        known.add(placed.id)
    }

    private mutating func answer() async throws {
        guard let id = known.all.randomElement(using: &draw.random) else { return }
        switch draw.random.next() % 4 {
        case 0: try await service.accept(id, .application(["answer": description("answer", draw.body())]))
        case 1: try await service.reject(id, InviteRejection(draw.pick([.busy, .declined])))
        case 2: try await service.cancel(id, .application([:]))
        default:
            try await service.hangUp(
                CallHangUp(invite: id, reason: draw.pick([.completed, .declined, .internalError]), duration: .zero))
        }
    }

    private mutating func signal() async throws {
        guard let id = known.all.randomElement(using: &draw.random) else { return }
        let candidate = draw.pick(["candidate:1 1 udp 1 127.0.0.1 9 typ host", "", "candidate:x"])
        let signals: [(String, JSONValue)] = [
            ("offer", description("offer", draw.body())), ("answer", description("answer", draw.body())),
            ("offer", ["type": "wanted"]), ("candidate", ["candidate": .string(candidate), "mid": "0"]),
            ("earlyAnswer", description("answer", draw.body())), ("offerRefused", [:]),
            ("digit", ["digit": "5", "duration": 100]), ("acknowledged", ["from": "what"]),
            ("transfer", ["to": .string(draw.pick(["bob", "carol", "nobody"]))]),
            ("transferProgress", ["state": .string(draw.pick(["accepted", "refused", "trying"]))]),
            ("probe", [:]), ("what", ["is": "this"]),
        ]
        let (type, data) = draw.pick(signals)
        try await service.send(CallSignal(invite: id, type: type, data: data))
    }
}

/// One walk. Each step is drawn from the seed; the device's threads take their own time.
private struct Walk {
    private let telephone: SIPTelephone
    private let device: Device
    private var draw: Draw
    /// The telephone's calls, and how often each has sent a request.
    private var calls: [(id: String, sequence: Int)] = []
    private var answered = 0
    private let seed: UInt64

    init(telephone: SIPTelephone, device: Device, seed: UInt64) {
        (self.telephone, self.device, self.seed) = (telephone, device, seed)
        draw = Draw(seed: seed)
    }

    mutating func step() async throws {
        switch draw.random.next() % 14 {
        case 0, 1: try invite()
        case 2...5: try request()
        case 6, 7: answerDevice()
        case 8...10: await draw.act(on: device, calling: "carol")
        case 11, 12:
            if let call = calls.randomElement(using: &draw.random) { telephone.sendMedia(draw.datagram(), in: call.id) }
        default: try await Task.sleep(for: .milliseconds(Int(draw.random.next() % 30)))
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
        if !draw.oneIn(3), let other = calls.dropLast().randomElement(using: &draw.random),
            let to = telephone.tagged(other.id),
            let tag = to.split(separator: "tag=").last
        {
            headers.append(
                "Replaces: \(other.id);to-tag=\(tag);from-tag=peer-\(other.id)\(draw.oneIn(4) ? ";early-only" : "")")
        }
        if draw.oneIn(4) { headers.append("Supported: 100rel, timer, replaces") }
        if draw.oneIn(6) { headers.append("Session-Expires: 90;refresher=uac") }
        try telephone.post(
            "INVITE", 1, of: calls[calls.count - 1].id, to: "<sip:alice@sip.test>", body: draw.body(), headers)
    }

    private mutating func request() throws {
        guard let place = calls.indices.randomElement(using: &draw.random) else { return }
        let call = calls[place]
        switch draw.random.next() % 13 {
        case 0, 1, 2: try telephone.post("ACK", call.sequence, of: call.id, body: draw.oneIn(4) ? draw.body() : "")
        case 3, 4: try post("INVITE", at: place, body: draw.body())
        case 5: try post("BYE", at: place)
        case 6: try telephone.post("CANCEL", 1, of: call.id, to: "<sip:alice@sip.test>", branch: "INVITE")
        case 7:
            let target = [
                "<sip:carol@sip.test>", "<sip:nobody@sip.test>", "sip:carol@sip.test", "<tel:+4930123>", replacing(),
            ]
            try post("REFER", at: place, ["Refer-To: \(target.randomElement(using: &draw.random) ?? "")"])
        case 8:
            let state =
                ["SIP/2.0 100 Trying", "SIP/2.0 200 OK", "SIP/2.0 603 Decline", "what"].randomElement(
                    using: &draw.random)
                ?? ""
            try post(
                "NOTIFY", at: place, body: state,
                [
                    "Event: refer", "Subscription-State: \(draw.oneIn(2) ? "active" : "terminated")",
                    "Content-Type: message/sipfrag",
                ])
        case 9: try post("INFO", at: place, body: "Signal=5\r\n", ["Content-Type: application/dtmf-relay"])
        case 10: try post("OPTIONS", at: place)
        case 11: try post("UPDATE", at: place, body: draw.oneIn(2) ? draw.body() : "")
        default: try post("PRACK", at: place, ["RAck: \(draw.random.next() % 3 + 1) \(call.sequence) INVITE"])
        }
    }

    private mutating func post(_ method: String, at place: Int, body: String = "", _ headers: [String] = []) throws {
        calls[place].sequence += 1
        try telephone.post(method, calls[place].sequence, of: calls[place].id, body: body, headers)
    }

    private mutating func replacing() -> String {
        guard let other = calls.randomElement(using: &draw.random) else { return "<sip:carol@sip.test>" }
        return "<sip:carol@sip.test?Replaces=\(other.id)%3Bto-tag%3Da%3Bfrom-tag%3Db>"
    }

    /// Answers the device's next request, or one of before again.
    private mutating func answerDevice(with status: Int? = nil) {
        let requests = telephone.requestsOfDevice
        guard !requests.isEmpty else { return }
        let place =
            status == nil && draw.oneIn(5)
            ? Int(draw.random.next() % UInt64(requests.count)) : min(answered, requests.count - 1)
        answered = max(answered, place + 1)
        let request = requests[place]
        guard request.method != .ack, request.method != .register else { return }
        let drawn =
            [100, 180, 183, 200, 200, 202, 302, 404, 481, 486, 491, 500, 503].randomElement(using: &draw.random) ?? 200
        telephone.answer(status ?? drawn, request, body: request.method == .invite && !draw.oneIn(5) ? draw.body() : "")
    }
}
