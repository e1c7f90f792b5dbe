internal import CallControl

/// What went wrong in a call.
///
/// Each rule looks at one kind of fault, and says nothing rather than guess. Rules on sound need a call that was established for two
/// seconds, so that a call that was hung up at once has no fault.
public struct CallDiagnosis: Sendable {
    /// What was found, the gravest first; nothing if nothing went wrong that this side can see.
    public let findings: [Finding]

    /// Judges a call.
    public init(_ facts: CallFacts) {
        findings = Self.ofOutcome(facts) + Self.ofMedia(facts)
    }

    /// Below this, in milliseconds, a call says nothing about its sound.
    private static let shortest = 2_000
    /// The share of packets or sound from which people hear it.
    private static let audible = 0.03

    // MARK: - The outcome

    private static func ofOutcome(_ facts: CallFacts) -> [Finding] {
        if facts.reason == .connectionLost { return [lost(facts)] }
        if facts.reason == .internalError {
            return [
                Finding(
                    .killed, .ours, "The device stopped while the call ran, or failed by a fault of its own.",
                    because: facts.error ?? "the record says no more",
                    advice: "Look into its log at that time (journalctl).")
            ]
        }
        guard let cause = facts.cause else { return ofError(facts) }
        let (side, advice) = judgement(cause)
        return [
            Finding(
                .setUpFailed, side, "The call failed: \(cause.sentence).",
                because: "cause \(cause.rawValue)" + (facts.error.map { ": \($0)" } ?? ""), advice: advice)
        ]
    }

    /// A call that could not be set up for a reason that is no cause.
    private static func ofError(_ facts: CallFacts) -> [Finding] {
        guard [.dialFailed, .acceptFailed].contains(facts.reason), let error = facts.error else { return [] }
        return [
            Finding(
                .setUpFailed, .unclear, "The call could not be set up.", because: error,
                advice: "Do what the error says, and look into the log of both sides.")
        ]
    }

    private static func lost(_ facts: CallFacts) -> Finding {
        let quiet = facts.media?.quiet.map { "nothing had come for \(seconds($0))" } ?? "nothing had ever come"
        return Finding(
            .connectionLost, .path, "The media path was lost, and no other one was found.",
            because: quiet + (facts.error.map { "; \($0)" } ?? ""),
            advice:
                "Look whether the other device or its network went away at that time; if not, whether a firewall or NAT forgets "
                + "UDP after a while.")
    }

    /// Whose fault a cause looks like, and what to try.
    private static func judgement(_ cause: CallFailureCause) -> (Finding.Side, String) {
        switch cause {
        case .descriptionUnreadable, .answerDoesNotFit, .unusableICE, .unusableAddress:
            (
                .peer,
                "It is a fault of the program that made the description: report it there, with the description from a debug log."
            )
        case .descriptionTooLarge: (.peer, "Have the other side offer fewer codecs, candidates or sections.")
        case .noAudio:
            (.peer, "The other side offers no sound, such as video or text alone: look at how it was called.")
        case .noCommonCodec:
            (.unclear, "Compare media.codecs with what the other side has; G.711 is what telephones have.")
        case .noCommonKeys:
            (
                .unclear,
                "Allow what the other side has: DTLS, SDES (media.srtp_suites), or in a trusted network media.allow_plain_rtp."
            )
        case .plainMediaRefused:
            (.unclear, "Have the other side protect media, or in a trusted network set media.allow_plain_rtp: true.")
        case .unsupportedTransport:
            (.peer, "Have the other side offer RTP over UDP (RTP/AVP, RTP/SAVP, UDP/TLS/RTP/SAVPF).")
        case .noPath:
            (
                .path,
                "Configure a TURN server (media.ice_servers, or ice_servers of the exchange): no direct way works, as behind firewalls that drop UDP."
            )
        case .certificateMismatch:
            (
                .unclear,
                "Something between the two sides replaces descriptions or media: look at proxies and media gateways on the way."
            )
        case .certificateUnsupported: (.peer, "Have the other side use an ECDSA (P-256) or RSA certificate for DTLS.")
        case .handshakeFailed, .handshakeRefused:
            (
                .unclear,
                "Compare the two sides' DTLS: roles (a=setup), fingerprints, SRTP profiles; the log has the alert."
            )
        case .handshakeTimedOut:
            (.path, "DTLS packets are lost: firewalls drop large UDP packets, or only one way works.")
        case .mediaTimedOut: (.path, "Look whether UDP passes in both directions between the two addresses.")
        case .noSuchNumber: (.unclear, "Check the number or name, and whether its user exists at the service.")
        case .notReachable:
            (.service, "Look whether the callee is registered, and whether its server or network is up.")
        case .fileUnusable: (.ours, "Look at the file and the disk: the log names them.")
        case .deviceFull: (.unclear, "Raise answer.max_calls at the device that was called, or give it more cores.")
        case .deviceFault: (.unclear, "Look into the log of the device that failed.")
        }
    }

    // MARK: - The sound

    private static func ofMedia(_ facts: CallFacts) -> [Finding] {
        guard let media = facts.media, facts.establishedAfter != nil, facts.duration >= shortest else { return [] }
        let rules: [(CallFacts, MediaFacts) -> Finding?] = [
            received, sent, slow, keys, format, clock, vanished, lossHere, lossThere, jitter, reordering, delay, drift,
            machine, disk, muted, card, microphone, quietPeer, program, quietProgram,
        ]
        let found = rules.compactMap { $0(facts, media) }
        let explained = found.reduce(into: Set<Finding.Code>()) { $0.formUnion(effects(of: $1.code)) }
        return found.filter { !explained.contains($0.code) }
    }

    /// What a fault brings about besides, and what is not named beside it.
    private static func effects(of code: Finding.Code) -> Set<Finding.Code> {
        switch code {
        case .wrongClockRate:
            [.lossHere, .jitter, .reordering, .longDelay, .clockDrift, .peerSilent, .wrongFormat, .machineStalled]
        case .wrongKeys, .wrongPayloadType, .wrongFormat: [.lossHere, .jitter, .reordering, .peerSilent, .clockDrift]
        case .reordering: [.jitter]
        case .machineStalled: [.jitter, .lossHere, .reordering, .longDelay, .clockDrift, .diskSlow]
        case .peerVanished, .lossHere: [.peerSilent]
        case .muted: [.microphoneSilent]
        case .setUpFailed, .nothingReceived, .nothingSentArrives, .peerSendsNoSound, .unknownSource, .noPackets,
            .lossThere, .jitter, .longDelay, .slowMedia, .diskSlow, .cardGaps, .slowProgram, .connectionLost, .killed,
            .clockDrift, .microphoneSilent, .peerSilent, .programSilent:
            []
        }
    }

    /// Nothing was heard of the other side.
    private static func received(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.received == 0 else { return nil }
        let reports = "0 packets of sound accepted, \(media.reports) RTCP packets came, \(media.sent) packets sent"
        if let (reason, count) = media.dropped.max(by: { $0.value < $1.value }), count >= 10 {
            return dropped(reason, count)
        }
        if media.reports > 0 {
            return Finding(
                .peerSendsNoSound, .peer, "The other side sent no sound, although its reports came.", because: reports,
                advice:
                    "Look whether it is muted or on hold, has no microphone, or waits for ours: its reports show that the path works."
            )
        }
        return Finding(
            .nothingReceived, .pathHere, "Nothing of the other side arrived.", because: reports,
            advice:
                "Let UDP through to this device (media.port, media.ports), and give it an address that the other side reaches: behind a "
                + "NAT use ICE with STUN or TURN, or the server's media relay.")
    }

    /// What came was dropped, all of it.
    private static func dropped(_ reason: String, _ count: Int) -> Finding {
        let evidence = "\(count) packets dropped (\(reason)), none accepted"
        switch reason {
        case "unauthenticated":
            return Finding(
                .wrongKeys, .peer, "The other side protects its sound with keys that are not those agreed on.",
                because: evidence,
                advice:
                    "Look for a program on the way that answers or re-keys for it, and at the SRTP suites of both sides."
            )
        case "early":
            return Finding(
                .wrongKeys, .unclear, "Sound came, and never any keys for it.", because: evidence,
                advice: "Look whether DTLS or the description with the keys gets through.")
        case "unknown payload type":
            return Finding(
                .wrongPayloadType, .peer, "The other side sends with a payload type that was not agreed on.",
                because: evidence,
                advice: "Compare the payload types of offer and answer with what it sends: it has to use ours.")
        case "unknown source":
            return Finding(
                .unknownSource, .path, "Sound came from another address than the one that the other side named.",
                because: evidence,
                advice: "Behind a NAT it names an address that it does not have: use ICE, or the server's media relay.")
        case "looped":
            return Finding(
                .noPackets, .path, "What came was our own sound: something sends our packets back.", because: evidence,
                advice: "Look for a loop between two gateways, or a description that names our own address.")
        default:
            return Finding(
                .noPackets, .peer, "What came is not usable RTP.", because: evidence,
                advice: "Look at what the other side sends, with `handset run --capture` or tcpdump.")
        }
    }

    /// Nothing of ours was heard.
    private static func sent(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        let isLost = media.sent >= 50 && media.reports > 0 && media.remoteLost * 10 >= media.sent * 9
        // A peer that receives nothing has nothing to report on (RFC 3550 §6.4). Three reports take ten seconds or more.
        let isUnreported = media.sent >= 500 && media.reports >= 3 && media.reportsOnUs == 0
        guard isLost || isUnreported else { return nil }
        return Finding(
            .nothingSentArrives, .pathThere, "Our sound did not arrive at the other side.",
            because: isUnreported
                ? "\(media.sent) packets sent, \(media.reports) RTCP packets came, and none reports on ours"
                : "\(media.sent) packets sent, \(media.remoteLost) reported as lost",
            advice:
                "Let UDP out to the address that the other side names, and look whether that address is reachable from here."
        )
    }

    private static func slow(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard let answered = facts.answeredAfter, let flowing = facts.flowingAfter, flowing - answered >= 3_000 else {
            return nil
        }
        return Finding(
            .slowMedia, .path, "It took long until both sides heard each other.",
            because: "answered after \(seconds(answered)), media both ways after \(seconds(flowing))",
            advice:
                "Packets of the set-up are lost, or ICE tries addresses that do not answer first: look at the candidates in a debug log."
        )
    }

    private static func keys(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.received > 0, let count = media.dropped["unauthenticated"],
            isAudible(count, of: media.received + count)
        else {
            return nil
        }
        return Finding(
            .wrongKeys, .peer,
            "A part of the other side's packets is protected with other keys, or was changed on the way.",
            because: "\(count) packets unauthenticated, \(media.received) accepted",
            advice: "Look whether two programs send for it, or whether it changed its keys without saying so.")
    }

    private static func format(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        // Lateness does not discard nearly all packets; what is no frame of the codec is discarded, too.
        if media.received >= 50, media.discarded * 10 >= media.received * 9 {
            return Finding(
                .wrongFormat, .peer, "The other side's packets do not have the sound that their payload type says.",
                because: "\(media.discarded) of \(media.received) packets discarded",
                advice: "Look whether it sends another codec, or with other parameters, than was agreed on.")
        }
        if media.malformed >= 10, isAudible(media.malformed, of: media.received) {
            return Finding(
                .wrongFormat, .peer, "The other side's packets do not have the sound that their payload type says.",
                because: "\(media.malformed) of \(media.received) payloads unusable",
                advice: "Look whether it sends another codec, or with other parameters, than was agreed on.")
        }
        guard media.received > 0, let count = media.dropped["unknown payload type"], count >= 10,
            isAudible(count, of: media.received + count)
        else { return nil }
        return Finding(
            .wrongPayloadType, .peer, "A part of the other side's packets has a payload type that was not agreed on.",
            because: "\(count) packets of an unknown type, \(media.received) accepted",
            advice: "Compare the payload types of offer and answer with what it sends.")
    }

    /// Rates at which timestamps advance with some codec.
    private static let clockRates = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]

    /// Timestamps advance at the rate of another codec.
    private static func clock(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard let expected = media.clockRate, let measured = media.measuredRate, media.clockSpan ?? 0 >= 3_000,
            let rate = clockRates.first(where: { abs(measured - Double($0)) < 0.03 * Double($0) }), rate != expected
        else { return nil }
        return Finding(
            .wrongClockRate, .peer, "The other side's timestamps advance at another rate than its codec has.",
            because: "\(Int(measured)) Hz measured over \(seconds(media.clockSpan ?? 0)), \(expected) Hz agreed on",
            advice:
                "Report it to the maker of the other side: timestamps of Opus advance by 48,000 a second at every bandwidth (RFC 7587), "
                + "those of G.711 and G.722 by 8,000.")
    }

    /// Clocks of computers and sound cards differ by less than half of this, in millionths.
    private static let strangeDrift = 500.0

    /// The two sides' clocks differ by more than clocks do.
    private static func drift(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard let rate = media.clockRate, rate > 0, let measured = media.measuredRate, let span = media.clockSpan,
            span >= 30_000
        else { return nil }
        let millionths = (measured / Double(rate) - 1) * 1e6
        // The first and the newest packet may have taken times as different as packets wait for in the jitter buffer.
        let uncertainty = Double(media.bufferedMost) / Double(span) * 1e6
        guard abs(millionths) >= strangeDrift, abs(millionths) <= 50_000, uncertainty * 3 <= abs(millionths) else {
            return nil
        }
        return Finding(
            .clockDrift, .unclear, "The two sides' clocks differ by more than clocks do.",
            because:
                "the other side's sound is \(Int(abs(millionths))) millionths too \(millionths > 0 ? "fast" : "slow"), "
                + "to \(Int(uncertainty.rounded(.up))), over \(seconds(span))",
            advice:
                "Compare it with another peer: if it is as far off, this machine's clock is wrong (timedatectl, chronyc tracking), else the "
                + "other side's sound card or program is. The jitter buffer makes up for it.")
    }

    /// The other side fell silent before the end.
    private static func vanished(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard facts.reason == .completed, media.received > 0, let quiet = media.quiet, quiet >= 5_000 else {
            return nil
        }
        return Finding(
            .peerVanished, .unclear, "At the end nothing had come from the other side for a while.",
            because: "the last packet came \(seconds(quiet)) before the end",
            advice:
                "It vanished, or was on hold; if people say that the sound broke off, look at its network and at NATs that forget UDP."
        )
    }

    private static func lossHere(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        let expected = media.received + media.lost
        guard media.received > 0, isAudible(media.lost, of: expected) else { return nil }
        return Finding(
            .lossHere, .pathHere, "Packets were lost on the way here.",
            because:
                "\(percent(media.lost, of: expected)) of \(expected) packets lost, \(percent(media.concealed, of: heard(media))) of the sound concealed",
            advice:
                "Look at this device's network, first at Wi-Fi and at the upstream of the other side; media.opus.fec and retransmission "
                + "help against a little loss.")
    }

    private static func lossThere(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.reports > 0, media.remoteLost * 10 < media.sent * 9, isAudible(media.remoteLost, of: media.sent)
        else { return nil }
        return Finding(
            .lossThere, .pathThere, "Our packets were lost on the way there.",
            because:
                "the other side reports \(percent(media.remoteLost, of: media.sent)) of \(media.sent) packets lost",
            advice:
                "Look at this device's upstream and at the other side's network; a lower media.opus.bitrate_bps helps where a link is full."
        )
    }

    private static func jitter(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.received > 0, isAudible(media.late + media.discarded, of: media.received) else { return nil }
        return Finding(
            .jitter, .pathHere, "Packets came too late to be played.",
            because:
                "\(percent(media.late + media.discarded, of: media.received)) late or without room; they waited \(media.buffered) ms on "
                + "average, 95 % less than \(media.bufferedMost) ms",
            advice:
                "The network delays packets by very different times, as full links and Wi-Fi do; media.jitter.max_delay_ms allows more."
        )
    }

    private static func reordering(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.received > 0, media.reordered * 20 >= media.received else { return nil }
        return Finding(
            .reordering, .pathHere, "Packets overtook each other on the way here.",
            because: "\(percent(media.reordered, of: media.received)) of \(media.received) packets came out of order",
            advice:
                "Several links share the packets, as with some routers and VPNs; it costs delay, and no sound while it is small."
        )
    }

    private static func delay(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        let trip = media.roundTrip ?? 0
        guard trip / 2 + media.buffered > 300 else { return nil }
        return Finding(
            .longDelay, .path, "The sound came with a delay that hinders a conversation.",
            because: "round trip \(trip) ms, jitter buffer \(media.buffered) ms on average",
            advice: trip / 2 > media.buffered
                ? "The way is long: use a media relay nearer to both sides, or none."
                : "The jitter buffer waits for packets that come at very different times: look at the network of both sides."
        )
    }

    private static func machine(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        let frames = media.frames + media.skipped
        guard media.skipped >= 5, media.skipped * 200 >= frames else { return nil }
        return Finding(
            .machineStalled, .ours, "This machine did not run the call in time.",
            because: "\(media.skipped) of \(frames) frames skipped",
            advice:
                "Give the device real-time priority (media.realtime_priority), or the machine less other work; virtual machines stall "
                + "when their host is full.")
    }

    private static func disk(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.playGap + media.recordGap >= 20 else { return nil }
        return Finding(
            .diskSlow, .ours, "The disk did not keep up with the call's files.",
            because: "\(media.playGap) ms missing of what was played, \(media.recordGap) ms of what was recorded",
            advice: "Use another disk for recordings, and look whether it fails (dmesg) or others write to it.")
    }

    private static func muted(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.card?.isMuted == true else { return nil }
        return Finding(
            .muted, .ours, "The microphone was muted at the end.", because: "audio.muted, or `handset control mute`",
            advice: "`handset control unmute` ends it.")
    }

    /// Below this, in dBFS, what was said cannot be heard.
    private static let inaudible = -60
    /// How long a call must be until its silence says something, in milliseconds.
    private static let silenceCounts = 5_000

    private static func microphone(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.source == "card", let peak = media.sentPeak, peak <= inaudible, facts.duration >= silenceCounts
        else { return nil }
        return Finding(
            .microphoneSilent, .ours, "The microphone gave silence.",
            because: "its loudest sound in \(seconds(facts.duration)) had \(peak) dBFS",
            advice:
                "Look whether it is plugged in, chosen (audio.capture) and turned up (`alsamixer -V capture`); `handset devices --test` shows "
                + "its level.")
    }

    private static func quietPeer(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.received >= 10, media.played >= silenceCounts, let peak = media.receivedPeak, peak <= inaudible
        else { return nil }
        return Finding(
            .peerSilent, .peer, "The other side's packets came, and there was only silence in them.",
            because: "\(media.received) packets, the loudest sound had \(peak) dBFS",
            advice: "Look whether its microphone is muted, dead or another one than people speak into.")
    }

    private static func quietProgram(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard media.source == "program", let peak = media.sentPeak, peak <= inaudible, facts.duration >= silenceCounts
        else { return nil }
        return Finding(
            .programSilent, .bot, "The program or bot said nothing.",
            because: "the loudest sound that it sent in \(seconds(facts.duration)) had \(peak) dBFS",
            advice:
                "Look into its own log, and try it alone with `handset loopback bot`; one that is meant to listen only is not at fault."
        )
    }

    private static func card(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard let card = media.card, card.captureGap + card.playGap >= 100 else { return nil }
        return Finding(
            .cardGaps, .ours, "The sound card ran empty, or did not take the sound in time.",
            because:
                "\(card.captureGap) ms of the microphone missing, \(card.playGap) ms for the loudspeaker not taken",
            advice:
                "Give the device real-time priority, and the card a longer period or another USB port; docs/sound.md says how."
        )
    }

    private static func program(_ facts: CallFacts, _ media: MediaFacts) -> Finding? {
        guard let response = facts.slowResponse, response >= 2_000 else { return nil }
        return Finding(
            .slowProgram, .bot, "The program or bot took long to answer.",
            because: "one answer in twenty came later than \(seconds(response)) after the caller's speech",
            advice:
                "Measure it alone with `handset loopback bot`; most of the time passes in its models or its network.")
    }

    // MARK: - Figures

    private static func heard(_ media: MediaFacts) -> Int { max(0, media.played - media.silent) }

    private static func isAudible(_ part: Int, of whole: Int) -> Bool {
        whole > 0 && Double(part) > audible * Double(whole)
    }

    private static func percent(_ part: Int, of whole: Int) -> String {
        guard whole > 0 else { return "0 %" }
        return "\(Double(part * 1_000 / whole) / 10) %"
    }

    private static func seconds(_ milliseconds: Int) -> String { "\(Double(milliseconds / 100) / 10) s" }
}
