internal import CallControl

/// Rules on how a call ended.
struct OutcomeRules {
    private let call: CallFacts

    init(_ call: CallFacts) { self.call = call }

    /// How it ended, and what failed before.
    var findings: [Finding] {
        let failures = [programFailed, fileFailed].compactMap(\.self)
        if call.reason == .connectionLost { return [serviceLost ?? lost] + failures }
        guard failures.isEmpty else { return failures }
        if call.reason == .internalError { return [stopped] }
        return call.cause.map { [failed($0)] } ?? unnamed
    }

    private var programFailed: Finding? {
        guard let failure = call.first(.programFailed) else { return nil }
        return Finding(
            .programFailed, .bot, "The program or bot that takes part in the call failed.",
            because: (failure.text ?? "it reported no reason") + ", at \(CallTimeline.clock(failure.at))",
            advice:
                "Read its own log, and try it alone: `handset loopback bot`, or the command of behaviour.command in a shell."
        )
    }

    private var fileFailed: Finding? {
        guard let failure = call.first(.fileFailed) else { return nil }
        return Finding(
            .fileFailed, .ours, "A file that the call plays or records could not be used.",
            because: (failure.text ?? "the record has no error") + ", at \(CallTimeline.clock(failure.at))",
            advice:
                "Check the disk's room (df), the file's folder and its permissions; behaviour.record_megabytes limits recordings."
        )
    }

    /// The service was gone when the other side fell silent: it may have hung up, and that did not arrive.
    private var serviceLost: Finding? {
        guard let loss = call.last(.serviceLost), call.last(.serviceBack).map({ $0.at < loss.at }) ?? true else {
            return nil
        }
        let quiet = call.media?.received.quiet.map {
            "; nothing of the other side came for the last \(Figure.seconds($0))"
        }
        return Finding(
            .serviceLost, isHeard(after: loss) ? .service : .unclear,
            "The connection to the signaling service was lost, so that neither side could hang up by it.",
            because: "it was lost at \(CallTimeline.clock(loss.at)), and not established again before the end"
                + (quiet ?? ""),
            advice:
                "Check whether the exchange or SIP server runs, and this device's own network; the server's log has the time of its end."
        )
    }

    /// Whether the other side's sound still came then, so that this device's network worked.
    private func isHeard(after moment: CallMoment) -> Bool {
        guard let established = call.first(.established), let quiet = call.media?.received.quiet else { return false }
        return established.at + Int64(call.duration) - Int64(quiet) > moment.at
    }

    private var lost: Finding {
        let quiet = call.media?.received.quiet.map { "nothing had come for \(Figure.seconds($0))" }
        return Finding(
            .connectionLost, .path, "The media path was lost, and no other one was found.",
            because: (quiet ?? "nothing had ever come") + (call.error.map { "; \($0)" } ?? ""),
            advice:
                "Check whether the other device or its network failed at that time; if not, whether a firewall or NAT forgets UDP "
                + "after a while.")
    }

    private var stopped: Finding {
        Finding(
            .killed, .ours, "The device stopped while the call ran, or failed by a fault of its own.",
            because: call.error ?? "the record has no error", advice: "Read its log of that time (journalctl).")
    }

    private func failed(_ cause: CallFailureCause) -> Finding {
        let (side, advice) = Self.judgement(cause)
        return Finding(
            .setUpFailed, side, "The call failed: \(cause.sentence).",
            because: "cause \(cause.rawValue)" + (call.error.map { ": \($0)" } ?? ""), advice: advice)
    }

    /// A call that could not be set up for a reason that is no cause.
    private var unnamed: [Finding] {
        guard [.dialFailed, .acceptFailed].contains(call.reason), let error = call.error else { return [] }
        return [
            Finding(
                .setUpFailed, .unclear, "The call could not be set up.", because: error,
                advice: "Do what the error advises, and read the log of both sides.")
        ]
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
            (.peer, "The other side offers no sound, such as video or text alone: check how it was called.")
        case .noCommonCodec:
            (.unclear, "Compare media.codecs with the codecs of the other side; telephones have G.711.")
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
                "Configure a TURN server (media.ice_servers, or ice_servers of the exchange): no direct path works, as behind "
                    + "firewalls that drop UDP."
            )
        case .certificateMismatch:
            (
                .unclear,
                "A program between the two sides replaces descriptions or media: check proxies and media gateways."
            )
        case .certificateUnsupported: (.peer, "Have the other side use an ECDSA (P-256) or RSA certificate for DTLS.")
        case .handshakeFailed, .handshakeRefused:
            (
                .unclear,
                "Compare the two sides' DTLS: roles (a=setup), fingerprints, SRTP profiles; the log has the alert."
            )
        case .handshakeTimedOut:
            (.path, "DTLS packets are lost: a firewall drops large UDP packets, or all packets in one direction.")
        case .mediaTimedOut: (.path, "Check whether UDP passes in both directions between the two addresses.")
        case .noSuchNumber: (.unclear, "Check the number or name, and whether its user exists at the service.")
        case .notReachable:
            (.service, "Check whether the callee is registered, and whether its server or network is up.")
        case .tooManyHops:
            (
                .unclear,
                "Look for devices whose flows, transfers or hand-overs call each other in a circle (docs/limits.md)."
            )
        case .fileUnusable: (.ours, "Check the file and the disk: the log names them.")
        case .deviceFull: (.unclear, "Raise answer.max_calls at the device that was called, or give it more cores.")
        case .deviceFault: (.unclear, "Read the log of the device that failed.")
        }
    }
}
