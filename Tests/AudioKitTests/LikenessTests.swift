import AudioKit
import Foundation
import TestSupport
import Testing

@Suite struct LikenessTests {
    private let sent = SyntheticVoice.syllables(seconds: 3, seed: 5)

    private func compare(sent: [Int16], received: [Int16]) -> LikenessReport? {
        var analysis = LikenessAnalysis()
        analysis.maximumDelayMilliseconds = 1_300
        return analysis.compare(sent: sent, received: received)
    }

    private func delayed(_ samples: [Int16], by count: Int) -> [Int16] { [Int16](repeating: 0, count: count) + samples }

    private func mixed(_ samples: [Int16], with noise: [Int16]) -> [Int16] {
        zip(samples, noise).map { Int16(clamping: Int($0) + Int($1)) }
    }

    @Test("A delay is measured to the sample, and an exact copy is wholly alike", arguments: [0, 1, 4_321, 60_007])
    func exactCopy(delay: Int) throws {
        let report = try #require(compare(sent: sent, received: delayed(sent, by: delay)))
        #expect(report.delayMilliseconds == Double(delay) / 48)
        #expect(report.likeness > 0.9999)
        #expect(report.tenthPercentile > 0.9999)
        #expect(report.speechWindows >= 8)
        #expect(report.foundWindows == report.speechWindows)
    }

    @Test("A tone, which is like itself at many delays, does not come back before it is sent")
    func tone() throws {
        let sent = (0..<96_000).map { Int16(8_000 * sin(2 * .pi * 440 * Double($0) / 48_000)) }
        let report = try #require(compare(sent: sent, received: Array(sent.dropFirst(30))))
        #expect(try #require(report.delayMilliseconds) >= 0)
        #expect(report.likeness > 0.999)
    }

    @Test("Gain, an offset and limiting to 16 bits change little")
    func gain() throws {
        let quiet = delayed(sent.map { $0 / 8 + 1_000 }, by: 3_000)
        let report = try #require(compare(sent: sent, received: quiet))
        #expect(report.delayMilliseconds == 62.5)
        #expect(report.likeness > 0.999)
    }

    @Test("Noise lowers the likeness as its power says, and leaves the delay alone")
    func noise() throws {
        let level = rms(sent)
        let noise = TestSignal.noise(samples: sent.count + 5_000, amplitude: Int(level * 3.0.squareRoot()), seed: 9)
        let report = try #require(
            compare(sent: sent, received: mixed(delayed(sent, by: 5_000), with: noise)))
        // As loud as the speech: about 1/√2.
        #expect(abs(report.likeness - 0.71) < 0.1)
        let delay = try #require(report.delayMilliseconds)
        #expect(abs(delay - 5_000.0 / 48) < 0.1)
    }

    @Test("Other speech, silence and noise are not alike")
    func unlike() throws {
        let other = SyntheticVoice.syllables(seconds: 3, seed: 6)
        let report = try #require(compare(sent: sent, received: other))
        #expect(report.likeness < 0.6)
        let silence = try #require(
            compare(sent: sent, received: [Int16](repeating: 0, count: sent.count)))
        #expect(silence.likeness == 0)
        #expect(silence.delayMilliseconds == nil)
        let noise = TestSignal.noise(samples: sent.count, amplitude: 3_000, seed: 2)
        #expect(try #require(compare(sent: sent, received: noise)).likeness < 0.3)
    }

    @Test("Where the delay grows and shrinks by far in the call, as with a jitter buffer, all of it is still found")
    func changingDelay() throws {
        let sent = SyntheticVoice.syllables(seconds: 24, seed: 7)
        // 20 ms more at each step, up to 500 ms; then less again.
        var received = [Int16](repeating: 0, count: 2_400)
        for (step, start) in stride(from: 0, to: sent.count, by: 24_000).enumerated() {
            let part = sent[start..<start + 24_000]
            received += step < 25 ? part + part.suffix(960) : part.dropLast(960)
        }
        let report = try #require(LikenessAnalysis().compare(sent: sent, received: received))
        #expect(report.likeness > 0.999)
        // A window in eight holds a seam.
        #expect(report.foundWindows * 10 > report.speechWindows * 9, "\(report)")
    }

    @Test("Where playout left out or put in a few milliseconds, only the windows at the seams suffer")
    func seams() throws {
        var received = delayed(sent, by: 2_400)
        received.removeSubrange(60_000..<60_480)
        received.insert(contentsOf: received[100_000..<100_960], at: 100_960)
        let report = try #require(compare(sent: sent, received: received))
        #expect(report.likeness > 0.999)
        let delay = try #require(report.delayMilliseconds)
        #expect((40...60).contains(delay))
    }

    @Test("Speech stretched as a whole is found, but is less alike")
    func stretched() throws {
        let stretched = (0..<sent.count).map { sent[Int(Double($0) / 1.02)] }
        let report = try #require(compare(sent: sent, received: delayed(stretched, by: 4_800)))
        #expect(report.likeness < 0.95)
        #expect(report.likeness > 0.3)
    }

    @Test("What comes back after the recording ended is counted, not held against the rest")
    func endsEarly() throws {
        let received = Array(delayed(sent, by: 9_600).prefix(90_000))
        let report = try #require(compare(sent: sent, received: received))
        #expect(report.likeness > 0.9999)
        #expect(report.unheardWindows > 0)
    }

    @Test("Words that are said again and again are found at the first place that fits")
    func repetition() throws {
        let word = SyntheticVoice.syllables(seconds: 0.8, seed: 8)
        let report = try #require(compare(sent: word + word + word, received: delayed(word + word + word, by: 960)))
        #expect(report.delayMilliseconds == 20)
    }

    @Test("Speech that is never found again makes the likeness low even if some of it came back")
    func brokenOff() throws {
        var received = delayed(sent, by: 960)
        for index in 48_000..<received.count { received[index] = 0 }
        let report = try #require(compare(sent: sent, received: received))
        #expect(report.likeness < 0.1)
        #expect(report.foundWindows < report.speechWindows / 2)
    }

    @Test("Without speech, or with nothing received, there is no report")
    func nothingToCompare() {
        let silence = [Int16](repeating: 0, count: 48_000)
        #expect(compare(sent: silence, received: sent) == nil)
        #expect(compare(sent: [], received: sent) == nil)
        #expect(compare(sent: sent, received: []) == nil)
    }
}
