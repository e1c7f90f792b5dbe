/// The forms that figures have in the evidence of findings.
enum Figure {
    /// Whether a part is large enough to be heard: three in a hundred.
    static func isAudible(_ part: Int, of whole: Int) -> Bool { whole > 0 && Double(part) > 0.03 * Double(whole) }

    /// Such as "9.1 %".
    static func percent(_ part: Int, of whole: Int) -> String {
        guard whole > 0 else { return "0 %" }
        return "\(Double(part * 1_000 / whole) / 10) %"
    }

    /// Such as "9.1 % of 3295 packets lost".
    static func share(_ part: Int, of whole: Int, _ what: String) -> String {
        "\(percent(part, of: whole)) of \(whole) \(what)"
    }

    /// Such as "61.2 s".
    static func seconds(_ milliseconds: Int) -> String { "\(Double(milliseconds / 100) / 10) s" }

    /// Such as "the loudest sound in 61.2 s had -70 dBFS".
    static func loudest(_ level: Int, in milliseconds: Int) -> String {
        "the loudest sound in \(seconds(milliseconds)) had \(level) dBFS"
    }

    /// Such as "600 packets unauthenticated, 2995 accepted".
    static func rejected(_ count: Int, _ reason: String, accepted: Int) -> String {
        "\(count) packets \(reason), \(accepted == 0 ? "none" : "\(accepted)") accepted"
    }
}

extension Finding {
    /// Packets that do not have the keys that were agreed on.
    static func wrongKeys(_ text: String, of side: Side = .peer, because evidence: String, advice: String) -> Finding {
        Finding(.wrongKeys, side, text, because: evidence, advice: advice)
    }

    /// Packets whose payload is not what their type promises.
    static func wrongFormat(because evidence: String) -> Finding {
        Finding(
            .wrongFormat, .peer, "The other side's packets do not contain the sound that their payload type promises.",
            because: evidence, advice: "Check whether it sends another codec, or other parameters, than was agreed on.")
    }

    /// Packets with a payload type that the agreement does not have.
    static func wrongPayloadType(because evidence: String) -> Finding {
        Finding(
            .wrongPayloadType, .peer, "The other side sends packets with a payload type that was not agreed on.",
            because: evidence,
            advice: "Compare the payload types of offer and answer with what it sends: it must use those of this side.")
    }
}
