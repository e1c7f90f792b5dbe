// drift FOLDER HOURS PLAYBACK_PPM CAPTURE_PPM: the delay of a sound card's two lines over simulated hours, heard impulse by
// impulse, beside its target. Expects ALSA_CONFIG_PATH to name a configuration whose cards `speaker` and `microphone` are
// scripted cards with their pages in FOLDER. Prints one JSON object, and a line an hour on standard error.

import Foundation

guard CommandLine.arguments.count == 5, let hours = Double(CommandLine.arguments[2]), hours > 0,
    let playback = Double(CommandLine.arguments[3]), let capture = Double(CommandLine.arguments[4])
else {
    FileHandle.standardError.write(Data("usage: drift FOLDER HOURS PLAYBACK_PPM CAPTURE_PPM\n".utf8))
    exit(2)
}
let rig = try Rig(folder: CommandLine.arguments[1], playbackPPM: playback, capturePPM: capture, seed: 1)

@MainActor
func report(_ hours: Double) -> String {
    let card = rig.statistics
    return """
        {"hours": \(hours), "playback_ppm": \(playback), "capture_ppm": \(capture), \
        "playback": \(rig.playback.object(card.playback)), "capture": \(rig.capture.object(card.capture)), \
        "worker_losses": \(rig.workerLosses), "card_losses": \(card.losses)}
        """
}

// What is learnt of the clocks in the first half minute is not the delay that is held.
rig.run(seconds: 30)
rig.forget()
var left = Int(hours * 3_600)
var done = 0
while left > 0 {
    let piece = min(left, 3_600)
    rig.run(seconds: piece)
    left -= piece
    done += piece
    FileHandle.standardError.write(Data("drift: \(report(Double(done) / 3_600))\n".utf8))
}
print(report(hours))
