internal import CallControl

/// Rules on the sound of a call that was established.
struct SoundRules {
    /// Shorter calls, in milliseconds, have no findings on their sound.
    private static let shortest = 2_000
    /// Of sound up to this level, in dBFS, people understand nothing.
    private static let inaudible = -60
    /// In a shorter call, in milliseconds, silence is no finding.
    private static let shortestSilence = 5_000

    private let call: CallFacts
    private let media: MediaFacts
    private var sent: SentFacts { media.sent }
    private var received: ReceivedFacts { media.received }

    /// - Returns: Nil if the call had no sound to judge.
    init?(_ call: CallFacts) {
        guard let media = call.media, call.establishedAfter != nil, call.duration >= Self.shortest else { return nil }
        self.call = call
        self.media = media
    }

    /// The gravest first, with those that are effects of others.
    var findings: [Finding] {
        [
            onHold, nothingReceived, nothingSentArrives, slowMedia, otherKeysInPart, otherSourceInPart, otherStreams,
            wrongFormat, wrongPayloadTypeInPart, wrongClockRate, vanished, lossHere, lossThere, jitter, reordering,
            delay, drift, machine, disk, muted,
            cardGaps, microphone, quietPeer, clippedPeer, clipped, slowProgram, silentProgram, stuckProgram,
        ].compactMap(\.self)
    }

    // MARK: - Nothing passes

    private var nothingReceived: Finding? {
        guard received.packets == 0, !isMostlyHeld else { return nil }
        if let (reason, count) = received.dropped.max(by: { $0.value < $1.value }), count >= 10 {
            return dropped(reason, count)
        }
        let evidence =
            "0 packets of sound accepted, \(received.reports) RTCP packets came, \(sent.packets) packets sent"
        if received.reports > 0 {
            return Finding(
                .peerSendsNoSound, .peer, "The other side sent no sound, although its reports came.", because: evidence,
                advice:
                    "Check whether it is muted or on hold, has no microphone, or waits for sound of this side: its reports show that "
                    + "the path works.")
        }
        return Finding(
            .nothingReceived, .pathHere, "Nothing came from the other side.", because: evidence,
            advice:
                "Let UDP through to this device (media.port, media.ports), and give it an address that the other side reaches: behind a "
                + "NAT use ICE with STUN or TURN, or the server's media relay.")
    }

    /// All that came was dropped.
    private func dropped(_ reason: String, _ count: Int) -> Finding {
        let evidence = Figure.rejected(count, "dropped (\(reason))", accepted: 0)
        switch reason {
        case "unauthenticated":
            return .wrongKeys(
                "The other side protects its sound with keys that are not those agreed on.", because: evidence,
                advice:
                    "Check for a program on the path that answers or re-keys for it, and the SRTP suites of both sides."
            )
        case "early":
            return .wrongKeys(
                "Sound came, and never any keys to read it.", of: .unclear, because: evidence,
                advice: "Check whether DTLS or the description with the keys gets through.")
        case "unknown payload type": return .wrongPayloadType(because: evidence)
        case "unknown source":
            return Finding(
                .unknownSource, .path, "Sound came from another address than the one that the other side named.",
                because: evidence,
                advice: "Behind a NAT it names an address that it does not have: use ICE, or the server's media relay.")
        case "looped":
            return Finding(
                .noPackets, .path, "Only this device's own sound came: its packets are sent back.", because: evidence,
                advice: "Check for a loop between two gateways, or a description that names this device's own address.")
        default:
            return Finding(
                .noPackets, .peer, "The packets that came are not usable RTP.", because: evidence,
                advice: "Look at what the other side sends, with `handset run --capture` or tcpdump.")
        }
    }

    private var nothingSentArrives: Finding? {
        let isLost = sent.packets >= 50 && received.reports > 0 && sent.lost * 10 >= sent.packets * 9
        // A peer that receives nothing has nothing to report on (RFC 3550 §6.4). Three reports take ten seconds or more.
        let isUnconfirmed = sent.packets >= 500 && received.reports >= 3 && sent.confirmations == 0
        guard isLost || isUnconfirmed, !isMostlyHeld else { return nil }
        return Finding(
            .nothingSentArrives, .pathThere, "This device's sound did not arrive at the other side.",
            because: "\(sent.packets) packets sent, "
                + (isUnconfirmed
                    ? "\(received.reports) RTCP packets came, and none of them confirms a packet"
                    : "\(sent.lost) reported as lost"),
            advice:
                "Let UDP out to the address that the other side names, and check whether that address is reachable from here."
        )
    }

    private var slowMedia: Finding? {
        guard let answered = call.answeredAfter, let established = call.establishedAfter, received.packets > 0 else {
            return nil
        }
        // Media flows both ways as the other side's reports confirm, which some never send, and others after five seconds: only what
        // this side has seen counts.
        let first = call.first(.firstPacket).flatMap { first in
            call.first(.established).map { Int(clamping: first.at - $0.at) }
        }
        let wait = established - answered + max(0, first ?? 0)
        guard wait >= 3_000 else { return nil }
        // A telephone may send nothing until a person speaks.
        let side: Finding.Side = established - answered >= 3_000 ? .path : .unclear
        return Finding(
            .slowMedia, side, "The other side's sound came late.",
            because: "the path and keys took \(Figure.seconds(established - answered)) from the answer on"
                + (first.map { ", and the first packet came \(Figure.seconds(max(0, $0))) later" } ?? ""),
            advice:
                "Packets of the set-up are lost, or ICE tries addresses that do not answer first: read the candidates in a debug log; or the "
                + "other side sent nothing at first, as telephones that suppress silence do."
        )
    }

    // MARK: - What the other side sends

    private var otherKeysInPart: Finding? {
        guard received.packets > 0, let count = received.dropped["unauthenticated"], isAudibleBesideAccepted(count)
        else { return nil }
        return .wrongKeys(
            "A part of the other side's packets is protected with other keys, or was changed on the path.",
            because: Figure.rejected(count, "unauthenticated", accepted: received.packets),
            advice: "Check whether two programs send for it, or whether it changed its keys without notice.")
    }

    private var otherSourceInPart: Finding? {
        guard received.packets > 0, let count = received.dropped["unknown source"], count >= 10,
            isAudibleBesideAccepted(count)
        else { return nil }
        return Finding(
            .unknownSource, .path,
            "A part of the packets came from another address than the other side named, or than it had.",
            because: Figure.rejected(count, "from an unknown source", accepted: received.packets) + when(.dropped),
            advice:
                "It changed its address or port during the call without notice, as behind a NAT that forgets it: use ICE, or the "
                + "server's media relay; or another program sends to this port.")
    }

    private var otherStreams: Finding? {
        guard received.packets > 0, let count = received.dropped["other stream"], count >= 10,
            isAudibleBesideAccepted(count)
        else { return nil }
        return Finding(
            .severalStreams, .peer,
            "The other side sent more than one stream, or kept changing its stream's name (SSRC).",
            because: "\(count) packets were of another stream than the one that was heard, \(received.packets) accepted"
                + when(.dropped),
            advice:
                "Check whether two programs send for it, or a gateway renames its packets; a sender keeps one SSRC (RFC 3550)."
        )
    }

    /// On hold for less, in milliseconds, is no finding.
    private static let shortestHold = 3_000

    /// When the other side wanted no sound, or in one direction only, since the call was established.
    private var holds: (total: Int64, spans: [String], lastsToEnd: Bool) {
        var (total, since): (Int64, Int64?) = (0, nil)
        var spans: [String] = []
        let established = call.first(.established)?.at ?? 0
        for moment in call.moments where moment.kind == .direction {
            if let begin = since, moment.at > begin {
                total += moment.at - begin
                spans.append("\(CallTimeline.clock(begin)) to \(CallTimeline.clock(moment.at))")
            }
            since = moment.text == "sendrecv" ? nil : max(moment.at, established)
        }
        if let begin = since {
            total += max(0, established + Int64(call.duration) - begin)
            spans.append("\(CallTimeline.clock(begin)) to the end")
        }
        return (total, spans, since != nil)
    }

    /// Whether that was for half of the call, so that silence is what was wanted.
    private var isMostlyHeld: Bool { holds.total * 2 >= Int64(call.duration) }

    private var onHold: Finding? {
        let (total, spans, _) = holds
        guard total >= Self.shortestHold else { return nil }
        return Finding(
            .onHold, .peer, "The other side put the call on hold, or wanted sound in one direction only.",
            because: "it said so by signaling, from " + spans.prefix(3).joined(separator: ", ")
                + (spans.count > 3 ? ", and \(spans.count - 3) times more" : ""),
            advice:
                "If no person did that, look at what its server or PBX sends (a=sendonly, a=inactive) after a transfer or on a timer."
        )
    }

    private var wrongFormat: Finding? {
        // Lateness does not discard nearly all packets; what is no frame of the codec is discarded, too.
        if received.packets >= 50, received.discarded * 10 >= received.packets * 9 {
            return .wrongFormat(because: ofReceived(received.discarded, "packets discarded"))
        }
        guard received.malformed >= 10, Figure.isAudible(received.malformed, of: received.packets) else { return nil }
        return .wrongFormat(because: ofReceived(received.malformed, "payloads unusable"))
    }

    private var wrongPayloadTypeInPart: Finding? {
        guard received.packets > 0, let count = received.dropped["unknown payload type"], count >= 10,
            isAudibleBesideAccepted(count)
        else { return nil }
        return .wrongPayloadType(because: Figure.rejected(count, "of an unknown type", accepted: received.packets))
    }

    /// Rates at which timestamps advance with some codec.
    private static let clockRates = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]

    private var wrongClockRate: Finding? {
        guard let clock = received.clock, clock.span >= 3_000,
            let rate = Self.clockRates.first(where: { abs(clock.measured - Double($0)) < 0.03 * Double($0) }),
            rate != clock.rate
        else { return nil }
        return Finding(
            .wrongClockRate, .peer, "The other side's timestamps advance at another rate than its codec has.",
            because:
                "\(Int(clock.measured)) Hz measured over \(Figure.seconds(clock.span)), \(clock.rate) Hz agreed on",
            advice:
                "Report it to the maker of the other side: timestamps of Opus advance by 48,000 a second at every bandwidth (RFC 7587), "
                + "those of G.711 and G.722 by 8,000.")
    }

    /// Clocks of computers and sound cards differ by less than half of this, in millionths.
    private static let strangeDrift = 500.0

    private var drift: Finding? {
        guard let clock = received.clock, clock.span >= 30_000 else { return nil }
        let millionths = clock.drift
        // The first and the newest packet may have taken times as different as packets wait for in the jitter buffer.
        let uncertainty = Double(received.playout.bufferedMost) / Double(clock.span) * 1e6
        guard abs(millionths) >= Self.strangeDrift, abs(millionths) <= 50_000, uncertainty * 3 <= abs(millionths)
        else { return nil }
        return Finding(
            .clockDrift, .unclear, "The two sides' clocks differ by more than clocks do.",
            because:
                "the other side's sound is \(Int(abs(millionths))) millionths too \(millionths > 0 ? "fast" : "slow"), "
                + "to \(Int(uncertainty.rounded(.up))), over \(Figure.seconds(clock.span))",
            advice:
                "Compare it with another peer: if that differs as much, this machine's clock is wrong (timedatectl, chronyc tracking), "
                + "else the other side's sound card or program is. The jitter buffer compensates for it.")
    }

    private var vanished: Finding? {
        guard call.reason == .completed, received.packets > 0, let quiet = received.quiet, quiet >= 5_000,
            !holds.lastsToEnd, droppedAtEnd == 0
        else { return nil }
        return Finding(
            .peerVanished, .unclear,
            call.isRunning
                ? "Nothing comes from the other side any more."
                : "Nothing came from the other side before the end of the call.",
            because: "the last packet came \(Figure.seconds(quiet)) \(call.isRunning ? "ago" : "before the end")"
                + silenceAtEnd,
            advice:
                "It vanished, or was on hold; if people report that the sound broke off, check its network, and NATs that forget UDP."
        )
    }

    // MARK: - The network

    private var lossHere: Finding? {
        // What came from elsewhere or in another stream is what is missing here.
        let elsewhere = (received.dropped["unknown source"] ?? 0) + (received.dropped["other stream"] ?? 0)
        guard received.packets > 0, received.lost > elsewhere, Figure.isAudible(received.lost, of: received.expected)
        else { return nil }
        let concealed = Figure.percent(received.playout.concealed, of: received.playout.heard)
        return Finding(
            .lossHere, .pathHere, "Packets to this device were lost.",
            because: Figure.share(received.lost, of: received.expected, "packets lost")
                + ", \(concealed) of the sound concealed" + when(.lost) + pause,
            advice:
                "Check this device's network, first Wi-Fi and the upstream of the other side; media.opus.fec and retransmission "
                + "help against a little loss.")
    }

    private var lossThere: Finding? {
        guard received.reports > 0, sent.lost * 10 < sent.packets * 9, Figure.isAudible(sent.lost, of: sent.packets)
        else { return nil }
        return Finding(
            .lossThere, .pathThere, "Packets from this device were lost.",
            because: "the other side reports " + Figure.share(sent.lost, of: sent.packets, "packets lost")
                + when(.remoteLost),
            advice:
                "Check this device's upstream and the other side's network; a lower media.opus.bitrate_bps helps where a link is full."
        )
    }

    private var jitter: Finding? {
        let unplayed = received.late + received.discarded
        guard received.packets > 0, Figure.isAudible(unplayed, of: received.packets) else { return nil }
        return Finding(
            .jitter, .pathHere, "Packets came too late to be played.",
            because: ofReceived(unplayed, "packets late or without room")
                + when(.unplayed)
                + "; they waited \(received.playout.buffered) ms on average, 95 % less than \(received.playout.bufferedMost) ms",
            advice:
                "The network delays packets by very different times, as full links and Wi-Fi do; media.jitter.max_delay_ms allows more."
        )
    }

    private var reordering: Finding? {
        guard received.packets > 0, received.reordered * 20 >= received.packets else { return nil }
        return Finding(
            .reordering, .pathHere, "Packets to this device overtook each other.",
            because: ofReceived(received.reordered, "packets came out of order") + when(.reordered),
            advice:
                "Several links share the packets, as with some routers and VPNs; it costs delay, and no sound while it is small."
        )
    }

    private var delay: Finding? {
        let (trip, buffered) = (media.roundTrip ?? 0, received.playout.buffered)
        guard trip / 2 + buffered > 300 else { return nil }
        return Finding(
            .longDelay, .path, "The sound came with a delay that hinders a conversation.",
            because: "round trip \(trip) ms, jitter buffer \(buffered) ms on average",
            advice: trip / 2 > buffered
                ? "The path is long: use a media relay nearer to both sides, or none."
                : "The jitter buffer waits for packets that come at very different times: check the network of both sides."
        )
    }

    // MARK: - This machine

    private var machine: Finding? {
        let frames = media.frames + media.skipped
        guard media.skipped >= 5, media.skipped * 200 >= frames else { return nil }
        return Finding(
            .machineStalled, .ours, "This machine did not run the call in time.",
            because: "\(media.skipped) of \(frames) frames skipped" + when(.skipped),
            advice:
                "Give the device real-time priority (media.realtime_priority), or the machine less other work; virtual machines stall "
                + "when their host is full.")
    }

    private var disk: Finding? {
        guard media.playGap + media.recordGap >= 20 else { return nil }
        return Finding(
            .diskSlow, .ours, "The disk did not keep up with the call's files.",
            because: "\(media.playGap) ms missing of what was played, \(media.recordGap) ms of what was recorded",
            advice: "Use another disk for recordings, and check whether it fails (dmesg) or others write to it.")
    }

    private var cardGaps: Finding? {
        guard let card = media.card, card.captureGap + card.playGap >= 100 else { return nil }
        return Finding(
            .cardGaps, .ours, "During the call the sound card had no sound, or did not take sound, in time.",
            because: "\(card.captureGap) ms of the microphone missing, \(card.playGap) ms of the loudspeaker not taken"
                + when(.cardGap),
            advice:
                "Give the device real-time priority, and the card a longer period or another USB port; docs/sound.md has the steps."
        )
    }

    // MARK: - Silence

    private var muted: Finding? {
        guard media.card?.isMuted == true else { return nil }
        return Finding(
            .muted, .ours, "The microphone was muted at the end.", because: "audio.muted, or `handset control mute`",
            advice: "`handset control unmute` ends it.")
    }

    private var microphone: Finding? {
        guard sent.source == "card", let peak = inaudiblePeakSent else { return nil }
        if media.card?.isDigitalSilence == true {
            return Finding(
                .microphoneSilent, .ours, "The microphone gave digital silence.",
                because:
                    "all samples in \(Figure.seconds(call.duration)) were equal; a microphone that works gives noise",
                advice:
                    "Check that it is plugged in, selected (audio.capture), and neither muted by a switch of its own nor in the card's "
                    + "mixer (`alsamixer -V capture`); `handset devices --test` shows its level.")
        }
        return Finding(
            .microphoneQuiet, .unclear, "The microphone gave no sound that is loud enough to be understood.",
            because: Figure.loudest(peak, in: call.duration),
            advice:
                "If a person spoke, turn the microphone up (`alsamixer -V capture`) or select another one (audio.capture); if not, nothing "
                + "is wrong.")
    }

    private var quietPeer: Finding? {
        guard received.packets >= 10, received.playout.played >= Self.shortestSilence, let peak = received.peak,
            peak <= Self.inaudible, !isMostlyHeld
        else { return nil }
        if received.isDigitalSilence == true {
            return Finding(
                .peerSilent, .peer, "The other side sent digital silence.",
                because: "\(received.packets) packets, and no noise in them; a microphone that works gives noise",
                advice:
                    "Check whether its microphone is muted or dead, or the call was on hold. A telephone that suppresses noise sends "
                    + "digital silence, too, until a person speaks.")
        }
        return Finding(
            .peerQuiet, .unclear, "The other side sent no sound that is loud enough to be understood.",
            because: Figure.loudest(peak, in: received.playout.played),
            advice:
                "If a person spoke there, that microphone is turned down, or is another one than was spoken into; if not, nothing is wrong."
        )
    }

    /// Of sound that is not clipped, fewer samples of 1,000 are at full scale.
    private static let clippedShare = 20

    private var clippedPeer: Finding? {
        guard received.packets >= 10, received.clipped >= Self.clippedShare else { return nil }
        return Finding(
            .peerClipped, .peer, "The other side's sound is clipped: it is far too loud where it is recorded.",
            because: "\(received.clipped) of 1,000 samples are at full scale",
            advice: "Turn its microphone down, or the gain of a gateway on the path.")
    }

    private var clipped: Finding? {
        guard sent.packets >= 10, sent.clipped >= Self.clippedShare else { return nil }
        let side: Finding.Side = sent.source == "program" ? .bot : sent.source == "echo" ? .peer : .ours
        return Finding(
            .clipped, side, "The sound that was sent is clipped: it is far too loud at its source.",
            because:
                "\(sent.clipped) of 1,000 samples of what was sent are at full scale (\(sent.source ?? "unknown source"))",
            advice:
                "Turn the microphone down (`alsamixer -V capture`, audio.microphone_db), or have the program or file give less."
        )
    }

    private var stuckProgram: Finding? {
        guard let moment = call.first(.programBehind) else { return nil }
        return Finding(
            .programStuck, .bot, "The program or bot did not take the caller's sound in time.",
            because: "it was behind from \(CallTimeline.clock(moment.at)) on",
            advice:
                "It hangs, or needs more time than the sound lasts: read its own log, and try it alone with `handset loopback bot`."
        )
    }

    private var silentProgram: Finding? {
        guard sent.source == "program", let peak = inaudiblePeakSent else { return nil }
        return Finding(
            .programSilent, .bot, "The program or bot sent silence.", because: Figure.loudest(peak, in: call.duration),
            advice:
                "Read its own log, and try it alone with `handset loopback bot`; one that is meant to listen only is not at fault."
        )
    }

    private var slowProgram: Finding? {
        guard let response = call.slowResponse, response >= 2_000 else { return nil }
        return Finding(
            .slowProgram, .bot, "The program or bot took long to answer.",
            because: "one answer in twenty came later than \(Figure.seconds(response)) after the caller's speech",
            advice:
                "Measure it alone with `handset loopback bot`; most of the time passes in its models or its network.")
    }

    // MARK: - Figures

    private var inaudiblePeakSent: Int? {
        guard call.duration >= Self.shortestSilence, let peak = sent.peak, peak <= Self.inaudible else { return nil }
        return peak
    }

    /// When most of what a column counts happened; nothing if that was throughout the call.
    private func when(_ column: CallTimeline.Column) -> String { call.timeline?.when(column) ?? "" }

    /// The longest time in which nothing came, and what was sent meanwhile.
    private var pause: String {
        guard let timeline = call.timeline, let span = timeline.longestPause, timeline.length(span) >= 2_000 else {
            return ""
        }
        return "; \(timeline.words(span)) no packet came, while \(timeline.sum(.sent, in: span)) were sent"
    }

    /// What was sent since the last packet came.
    /// Packets that were dropped since the last one that was accepted.
    private var droppedAtEnd: Int {
        guard let timeline = call.timeline, let last = timeline[.received].lastIndex(where: { $0 > 0 }) else {
            return 0
        }
        return timeline.sum(.dropped, in: last + 1..<timeline.count)
    }

    private var silenceAtEnd: String {
        guard let timeline = call.timeline, let last = timeline[.received].lastIndex(where: { $0 > 0 }),
            last + 1 < timeline.count
        else { return "" }
        let rest = last + 1..<timeline.count
        return
            ", at \(CallTimeline.clock(timeline.time(ofRow: last + 1))); since then \(timeline.sum(.sent, in: rest)) were sent, and "
            + "\(timeline.sum(.reports, in: rest)) RTCP packets came"
    }

    private func isAudibleBesideAccepted(_ count: Int) -> Bool {
        Figure.isAudible(count, of: received.packets + count)
    }

    private func ofReceived(_ count: Int, _ what: String) -> String {
        Figure.share(count, of: received.packets, what)
    }
}
