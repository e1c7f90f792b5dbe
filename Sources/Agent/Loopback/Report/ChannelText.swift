public import LoopbackAnalysis

extension ChannelFigures {
    /// Each channel as text: a label and a description.
    public var lines: [(label: String, text: String)] {
        var lines: [(String, String)] = []
        for output in SoundChannel.allCases.prefix(outputs) {
            for input in SoundChannel.allCases.prefix(inputs) {
                guard let path = path(output, input) else { continue }
                lines.append(("\(name(output, of: outputs)) → \(name(input, of: inputs))", Self.text(path)))
            }
        }
        if let crosstalk {
            lines.append(
                (
                    "Crosstalk",
                    (crosstalk.isBound ? "below the noise, at most " : "") + Self.decibels(crosstalk.decibels)
                ))
        }
        lines.append(("Channels", verdict))
        return lines
    }

    private func name(_ channel: SoundChannel, of count: Int) -> String { count == 2 ? channel.rawValue : "mono" }

    private static func text(_ path: Path) -> String {
        guard path.isHeard else { return "not heard (below \(decibels(path.gainDB)))" }
        let sign = path.isInverted.map { $0 ? ", inverted" : "" } ?? ", polarity unknown"
        return decibels(path.gainDB) + sign
    }

    private static func decibels(_ value: Double) -> String { AudioText.fixed(value, 1) + "\u{202F}dB" }

    /// The wiring, in one line.
    public var verdict: String {
        var parts: [String] = []
        if isSwapped == true { parts.append("left and right are swapped") }
        if hasOppositePolarity == true {
            parts.append("one has the sign turned and the other has not: together they cancel each other")
        }
        if outputs == 2 {
            parts += unheardOutputs.map { "what is played on the \($0.rawValue) one is not heard" }
        }
        if inputs == 2 { parts += deafInputs.map { "nothing is captured on the \($0.rawValue) one" } }
        if parts.isEmpty, let crosstalk, crosstalk.decibels > -6 {
            parts.append("left and right are heard alike: mixed, in the air, or by a card with one channel")
        }
        return parts.isEmpty ? "in their places, of one polarity" : parts.joined(separator: "; ")
    }
}

extension LoopbackVerdict {
    /// Advice about a card's channels.
    static func channelAdvice(_ figures: ChannelFigures?) -> String {
        (figures?.faults ?? []).map { fault in
            switch fault {
            case .swapped: "Left and right are swapped: change the plugs of the cable, or its wires."
            case .oppositePolarity:
                "One channel has the sign turned: a balanced plug in an unbalanced socket, or two wires that are swapped. "
                    + "Calls take the mean of both, which is next to nothing."
            case .inverted:
                "The sign is turned on all channels: two wires are swapped, or an amplifier inverts. It is not audible; "
                    + "--max-channel-faults 1 accepts it."
            }
        }.joined(separator: " ")
    }
}
