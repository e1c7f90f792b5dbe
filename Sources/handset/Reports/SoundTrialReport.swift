internal import AudioDevices
internal import Loopback

/// What a trial of a sound card has shown, to read and to parse.
struct SoundTrialReport {
    let result: SoundTrialResult
    /// Which Handset tried it, and where.
    var origin = RunOrigin.here
    private let directory = CardDirectory()

    init(result: SoundTrialResult) { self.result = result }

    var text: String {
        let style = TerminalStyle.standardOutput
        var lines: [String] = []
        let sides = [
            ("playback", result.configuration.playback, result.playback, result.statistics.playback),
            ("capture", result.configuration.capture, result.capture, result.statistics.capture),
        ]
        for (direction, name, grant, statistics) in sides {
            guard let name else { continue }
            lines.append(
                "\(direction.padded(to: 10)) \(style.bold(directory.label(of: name)))  \(grant.map(Self.text) ?? "not opened")"
            )
            guard grant != nil else { continue }
            lines.append(
                "           \(statistics.cardFrames) frames moved, delay "
                    + "\(statistics.delayMilliseconds.rounded(toPlaces: 1)) ms (ring "
                    + "\(statistics.ringMilliseconds.rounded(toPlaces: 1)), resampler "
                    + "\(statistics.resamplerMilliseconds.rounded(toPlaces: 1)), card "
                    + "\(statistics.cardMilliseconds.rounded(toPlaces: 1)), behind it "
                    + "\(statistics.behindCardMilliseconds.rounded(toPlaces: 1))), xruns \(statistics.xruns)")
        }
        if result.capture != nil {
            lines.append(
                "level      \(result.levelDBFS.rounded(toPlaces: 1)) dBFS, with the tone "
                    + "\(result.levelWithToneDBFS.rounded(toPlaces: 1)) dBFS, peak "
                    + "\(result.peakDBFS.rounded(toPlaces: 1)) dBFS")
            if result.hearsItself { lines.append("           The microphone hears the tone.") }
        }
        lines.append("by         \(origin.text)")
        for advice in result.advice { lines.append("\(style.yellow("!")) \(advice)") }
        lines.append(result.isWell ? style.green("Sound moves.") : style.red("This does not work yet."))
        return lines.joined(separator: "\n")
    }

    private static func text(_ grant: CardGrant) -> String {
        "\(grant.rate) Hz, \(grant.channels) ch, \(grant.format.name), period "
            + "\(grant.periodMilliseconds.rounded(toPlaces: 2)) ms, buffer \(grant.bufferMilliseconds.rounded(toPlaces: 1)) ms"
    }

    var json: String {
        var object = JSONObjectText()
        object.add("outcome", result.isWell ? "works" : "does not work")
        object.add(origin)
        object.add(
            "playback", object: side(result.configuration.playback, result.playback, result.statistics.playback))
        object.add(
            "capture", object: side(result.configuration.capture, result.capture, result.statistics.capture))
        object.add("level_dbfs", result.capture == nil ? nil : result.levelDBFS)
        object.add("level_with_tone_dbfs", result.capture == nil ? nil : result.levelWithToneDBFS)
        object.add("peak_dbfs", result.capture == nil ? nil : result.peakDBFS)
        object.add("hears_itself", result.hearsItself ? "yes" : "no")
        object.add("advice", texts: result.advice)
        return object.text
    }

    private func side(_ name: String?, _ grant: CardGrant?, _ statistics: LineStatistics) -> JSONObjectText {
        var object = JSONObjectText()
        object.add("name", name)
        object.add("card", name.flatMap(directory.cardName))
        object.add("rate", grant.map { Double($0.rate) })
        object.add("channels", grant.map { Double($0.channels) })
        object.add("format", grant?.format.name)
        object.add("period_ms", grant?.periodMilliseconds)
        object.add("buffer_ms", grant?.bufferMilliseconds)
        object.add("frames", Double(statistics.cardFrames))
        object.add("delay_ms", statistics.delayMilliseconds)
        object.add("delay_ring_ms", statistics.ringMilliseconds)
        object.add("delay_resampler_ms", statistics.resamplerMilliseconds)
        object.add("delay_card_ms", statistics.cardMilliseconds)
        object.add("delay_behind_card_ms", statistics.behindCardMilliseconds)
        object.add("drift_ppm", statistics.driftPPM)
        object.add("xruns", Double(statistics.xruns))
        object.add("missing_samples", Double(statistics.missingSamples))
        return object
    }
}
