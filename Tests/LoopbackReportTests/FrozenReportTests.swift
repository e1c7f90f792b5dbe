import AudioKit
import Loopback
import TestSupport
import Testing

@testable import LoopbackAnalysis

/// The members of a loopback's report: Tests/Frozen/loopback-report.txt.
struct FrozenReportTests {
    /// A run that has something of everything.
    private static var whole: LoopbackRun {
        var run = Recording.run
        run.mode = .soak
        run.origin = RunOrigin(version: "1.2.3", host: "rack-7", system: "Linux 6.1 x86_64")
        run.trouble = CardTrouble(playbackXruns: 2, aheadMilliseconds: 20)
        run.minutes = [SoakMonitor.Minute(number: 0, levelDBFS: -20)]
        let silence = [Int16](repeating: 0, count: 240_000)
        var speaker = SyntheticSpeech()
        run.quality = SpeechQualityAnalysis().compare(reference: speaker.samples(seconds: 4), degraded: silence)
        return run
    }

    @Test("A report's members keep their names, also of a run that measured nothing")
    func members() throws {
        var whole = JSONMembers()
        try whole.take(Self.whole.jsonText.utf8)
        var silent = JSONMembers()
        try silent.take(Recording.silent.jsonText.utf8)
        let present = whole.lines("soak ").union(silent.lines("silent call "))
        let differences = try FrozenList("loopback-report").differences(from: present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }
}
