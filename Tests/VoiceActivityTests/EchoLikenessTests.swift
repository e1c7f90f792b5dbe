import Testing

@testable import VoiceActivity

@Suite("What is heard follows what we said")
struct EchoLikenessTests {
    /// For each 10 ms whether it is taken for our echo.
    private static func echoes(_ heard: [Int16], said: [Int16]) -> [Bool] {
        var meter = SoundMeter()
        var result: [Bool] = []
        for index in heard.indices {
            let ours = index < said.count ? said[index] : 0
            meter.add(heard: Float(heard[index]) / 32_768, said: Float(ours) / 32_768)
            if index % 80 == 79 { result.append(meter.measure().isEcho) }
        }
        return result
    }

    /// The share of the hops from second `from` on, with sound louder than −46 dBFS, that are taken for echo.
    private static func share(_ echoes: [Bool], where sound: [Int16], from: Int = 4) -> Double {
        let loud = echoes.indices.filter { hop in
            hop >= from * 100 && hop * 80 + 80 <= sound.count
                && sound[hop * 80..<hop * 80 + 80].contains { abs(Int($0)) > 330 }
        }
        return Double(loud.count { echoes[$0] }) / Double(max(1, loud.count))
    }

    @Test(
        "An echo is known as one after some seconds, regardless of its delay up to 0.6 s, and however loud",
        arguments: [0, 160, 3_200, 4_800])
    func delays(delay: Int) {
        let said = CallScene.speech(seed: 31, seconds: 14)
        for divisor in [1, 3] {
            let line = CallScene.noise(seed: 5, count: said.count, amplitude: 6)
            let echo = CallScene.sum(line, said, at: delay, dividedBy: divisor)
            let share = Self.share(Self.echoes(echo, said: said), where: echo)
            #expect(share > 0.8, "\(share) of an echo of 1/\(divisor)")
        }
    }

    @Test("A caller who speaks over a faint echo is hardly ever taken for it")
    func caller() {
        let said = CallScene.speech(seed: 31, seconds: 20)
        let speech = CallScene.speech(seed: 77, seconds: 20)
        let line = CallScene.noise(seed: 5, count: said.count, amplitude: 6)
        let heard = CallScene.sum(CallScene.sum(line, said, at: 800, dividedBy: 30), speech)
        let share = Self.share(Self.echoes(heard, said: said), where: speech)
        #expect(share < 0.05, "\(share)")
    }

    @Test("Where we say nothing there is no echo, and another voice than ours is none")
    func others() {
        let speech = CallScene.speech(seed: 77, seconds: 12)
        #expect(!Self.echoes(speech, said: []).contains(true))
        #expect(Self.share(Self.echoes(speech, said: CallScene.speech(seed: 12, seconds: 12)), where: speech) < 0.05)
    }
}
