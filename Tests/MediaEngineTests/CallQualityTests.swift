@testable import CallMedia
import Testing

@Suite("The estimated quality of a call (ITU-T G.107)")
struct CallQualityTests {
    @Test("Without delay and loss it is that of the recommendation's default values: R = 93.2, MOS = 4.41")
    func best() {
        let quality = CallQuality(delay: .milliseconds(100), loss: 0)
        #expect(quality.rating == 93.2 && abs(quality.opinionScore - 4.41) < 0.005)
    }

    @Test(
        "Delay costs what equation 7-27 says",
        arguments: [(100, 0.0), (150, 0.164), (200, 3.044), (400, 24.07)])
    func delay(milliseconds: Int, cost: Double) {
        let quality = CallQuality(delay: .milliseconds(milliseconds), loss: 0)
        #expect(abs(93.2 - quality.rating - cost) < 0.01, "\(93.2 - quality.rating)")
    }

    @Test(
        "Losses cost what equation 7-29 says for G.711 with concealment",
        arguments: [(0.01, 3.64), (0.05, 15.78), (0.2, 42.13)])
    func loss(share: Double, cost: Double) {
        let quality = CallQuality(delay: .zero, loss: share)
        #expect(abs(93.2 - quality.rating - cost) < 0.01, "\(93.2 - quality.rating)")
    }

    @Test("It never leaves its scale, and gets no better with more delay or loss")
    func scale() {
        var before = 5.0
        for step in 0...100 {
            let quality = CallQuality(delay: .milliseconds(40 * step), loss: Double(step) / 50)
            #expect((0...93.2).contains(quality.rating) && (1...4.42).contains(quality.opinionScore))
            #expect(quality.opinionScore <= before)
            before = quality.opinionScore
        }
    }

    @Test("A call in which nothing was heard has none")
    func silent() {
        #expect(CallQuality(MediaReport.empty) == nil)
    }
}
