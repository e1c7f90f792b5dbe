internal import AudioKit
public import LoopbackAnalysis

extension Withheld {
    /// The figure's name, for a person.
    public var name: String {
        switch figure {
        case .noise: "Noise floor"
        case .response: "Frequency response"
        case .channels: "Channels"
        case .tone(let frequency): "THD+N at \(AudioText.frequency(frequency, isExact: true))"
        }
    }

    /// Why the figure is withheld, for a person: the rest of a sentence that begins with "withheld:".
    public var reasonText: String {
        switch self.reason {
        case .interrupted(let times):
            "the card was interrupted \(times == 1 ? "once" : "\(times) times") while it was played"
        case .delayChanged(let samples):
            "the delay changed by \(AudioText.number(AudioText.milliseconds(samples), "ms")) while it was played"
        case .gap: "a piece of it is missing"
        case .glitch: "there is a click or a gap in it"
        case .carrierLost: "the carrier that follows it was not heard"
        case .repeatsDiffer(let decibels): "it was measured twice, and differs by \(AudioText.number(decibels, "dB"))"
        }
    }

    /// A short name of the figure and of the reason that stay the same between versions, for programs.
    var keys: (figure: String, reason: String) {
        let figure =
            switch self.figure {
            case .noise: "noise"
            case .response: "response"
            case .tone: "tone"
            case .channels: "channels"
            }
        let reason =
            switch self.reason {
            case .interrupted: "interrupted"
            case .delayChanged: "delay_changed"
            case .gap: "gap"
            case .glitch: "glitch"
            case .carrierLost: "carrier_lost"
            case .repeatsDiffer: "repeats_differ"
            }
        return (figure, reason)
    }

    /// Whether the figure is the response.
    var isResponse: Bool { figure == .response }

    /// Whether the figure is a tone's.
    var isTone: Bool {
        switch figure {
        case .tone: true
        case .noise, .response, .channels: false
        }
    }
}

extension DelayChange {
    /// What happened, for a person.
    public var text: String {
        func seconds(_ position: Int) -> String {
            AudioText.fixed(Double(position) / Double(AudioFormat.sampleRate), 1)
        }
        return
            "by \(AudioText.number(AudioText.milliseconds(samples), "ms")) between \(seconds(positions.lowerBound)) and "
            + "\(seconds(positions.upperBound)) s"
    }
}
