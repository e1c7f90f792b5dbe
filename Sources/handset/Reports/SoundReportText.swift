internal import AudioDevices
internal import CallMedia
internal import MediaEngine
internal import AudioKit

/// What a call's report says of its sound card, and of where its delay comes from.
struct SoundReportText {
    let sound: SoundReport
    let card: CardStatistics?

    /// Label and value of each line for a person.
    var lines: [(String, String)] {
        var lines = [
            (
                "levels",
                "microphone \(Self.tenths(sound.microphoneDBFS)) dBFS, loudspeaker \(Self.tenths(sound.loudspeakerDBFS)) dBFS"
                    + (sound.isMuted ? ", muted" : "")
            )
        ]
        if let reduction = sound.echo.echoReturnLossEnhancementDB {
            lines.append(("echo", "lowered by \(Self.tenths(reduction)) dB"))
        }
        if let card {
            lines.append(
                (
                    "card",
                    "\(card.isRunning ? "running" : "not there"), lost \(card.losses), xruns "
                        + "\(card.playback.xruns) out \(card.capture.xruns) in, drift "
                        + "\(Self.tenths(card.playback.driftPPM)) out \(Self.tenths(card.capture.driftPPM)) in ppm"
                ))
        }
        return lines
    }

    /// The same for a program.
    var object: JSONObjectText {
        var object = JSONObjectText()
        object.add("microphone_dbfs", Self.tenths(sound.microphoneDBFS))
        object.add("microphone_peak_dbfs", Self.tenths(sound.microphonePeakDBFS))
        object.add("loudspeaker_dbfs", Self.tenths(sound.loudspeakerDBFS))
        object.add("loudspeaker_peak_dbfs", Self.tenths(sound.loudspeakerPeakDBFS))
        object.add("muted", sound.isMuted ? 1.0 : 0)
        object.add("volume_db", sound.volumeDB)
        object.add("echo_coupling_db", sound.echo.echoCouplingDB.map(Self.tenths))
        object.add("echo_return_loss_enhancement_db", sound.echo.echoReturnLossEnhancementDB.map(Self.tenths))
        object.add("echo_delay_ms", sound.echo.echoDelaySamples.map { Self.tenths(Double($0) / 48) })
        object.add("turns_skipped", Double(sound.ticksSkipped))
        object.add("capture_underrun_samples", Double(sound.captureUnderrunSamples))
        object.add("play_overrun_samples", Double(sound.playOverrunSamples))
        object.add("call_samples_lost", Double(sound.callSamplesLost))
        guard let card else { return object }
        object.add("card_running", card.isRunning ? 1.0 : 0)
        object.add("card_losses", Double(card.losses))
        object.add("playback_xruns", Double(card.playback.xruns))
        object.add("capture_xruns", Double(card.capture.xruns))
        object.add("playback_drift_ppm", Self.tenths(card.playback.driftPPM))
        object.add("capture_drift_ppm", Self.tenths(card.capture.driftPPM))
        object.add("playback_target_ms", Self.tenths(card.playback.targetMilliseconds))
        object.add("capture_target_ms", Self.tenths(card.capture.targetMilliseconds))
        object.add("missing_samples", Double(card.playback.missingSamples + card.capture.missingSamples))
        object.add("delay_jumps", Double(card.playback.jumps + card.capture.jumps))
        return object
    }

    private static func tenths(_ value: Double) -> Double { value.rounded(toPlaces: 1) }
}

extension DelayBudget {
    /// One line for a person.
    var text: String {
        func list(_ stages: [Stage]) -> String {
            stages.filter { $0.milliseconds >= 0.05 }
                .map {
                    "\($0.name.split(separator: "_").joined(separator: " ")) \($0.milliseconds.rounded(toPlaces: 1))"
                }
                .joined(separator: ", ")
        }
        return "\(totalMilliseconds.rounded(toPlaces: 1)) ms: \(list(sending)); network "
            + "\(networkMilliseconds.rounded(toPlaces: 1)); \(list(receiving))"
    }

    /// The stages for a program, in milliseconds.
    var object: JSONObjectText {
        var object = JSONObjectText()
        for stage in sending { object.add(stage.name, stage.milliseconds.rounded(toPlaces: 2)) }
        object.add("network", networkMilliseconds.rounded(toPlaces: 2))
        for stage in receiving { object.add(stage.name, stage.milliseconds.rounded(toPlaces: 2)) }
        object.add("total", totalMilliseconds.rounded(toPlaces: 2))
        return object
    }
}
