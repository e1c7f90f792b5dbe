@testable import AudioDevices
import AudioKit
import CScriptedCard
import CardSupport
import Foundation
@testable import Loopback
import LoopbackAnalysis
import Testing

/// Calls that are measured from outside, by cards behind the real libasound, in virtual time: what stands for the call is a
/// cable, of which all is known.
@Suite("Measuring a call by cards", .serialized)
struct CallCardTests {
    private static let date = "2025-06-01T12:00:00Z"

    /// Six seconds, so that it is said once.
    private static var speech: [Int16] {
        var speaker = SyntheticSpeech()
        return speaker.samples(seconds: 6)
    }

    /// What cards that keep `buffer` milliseconds ahead hear of a way of `ticks`.
    private func hear(
        _ loopback: CallLoopback, ticks: UInt32, buffer: Double, jitter: Int64 = 0, seconds: Double? = nil,
        _ set: (inout scripted_card) -> Void = { $0.tells_position = 1 },
        script: @escaping (DuplexBench) -> Void = { _ in }
    ) throws -> CallCards.Heard {
        let card = try ScriptedCard()
        card.control.cable_delay = ticks
        set(&card.control)
        let bench = try #require(
            DuplexBench(card, loopback.signal, followedBy: loopback.following, bufferMilliseconds: buffer))
        bench.jitterNanoseconds = jitter
        bench.script = script
        bench.run(samples: Int((seconds ?? loopback.seconds + 1) * 48_000))
        return CallCards.Heard(
            samples: bench.samples, ownMilliseconds: bench.facts.ownMilliseconds, alignment: bench.alignment,
            clockRate: bench.clockRate, interruptions: bench.interruptions,
            facts: bench.facts.factsOfMeasuringCards)
    }

    private func delay(_ run: LoopbackRun) -> Double { run.measurement.timing.meanDelay ?? -1 }

    @Test(
        "What the measuring cards add is not in the delay, to 0.1 ms, however deep their buffer and however late their thread",
        arguments: [(4_800, 20, 0), (4_800, 72.5, 0), (7_203, 50, 3_000_000), (480, 35, 1_000_000)]
            as [(UInt32, Double, Int64)])
    func ownDelay(ticks: UInt32, buffer: Double, jitter: Int64) throws {
        let loopback = CallLoopback(carrierSeconds: 2, speech: Self.speech)
        let heard = try hear(loopback, ticks: ticks, buffer: buffer, jitter: jitter, seconds: 3)
        let run = loopback.run(startedAt: Self.date, heard: heard, ownMilliseconds: nil, path: nil, ear: .here)
        #expect(abs(delay(run) - Double(ticks)) < 4.8, "\(delay(run)), \(heard.ownMilliseconds ?? -1)")
        let range = try #require(run.measurement.timing.delayRange)
        #expect(abs(range.lowerBound - Double(ticks)) < 4.8 && abs(range.upperBound - Double(ticks)) < 4.8, "\(range)")
        // Of what is ahead of the mouth nothing is left out.
        #expect(try #require(heard.ownMilliseconds) >= buffer - 0.2)
        #expect(run.facts.contains { $0.label == "Measuring cards' own delay" && $0.value.contains("libasound") })
    }

    @Test(
        "Cards that report their position at interrupts only are off by no more than a period, and by nothing if measured"
    )
    func interrupts() throws {
        let loopback = CallLoopback(carrierSeconds: 2, speech: Self.speech)
        let heard = try hear(loopback, ticks: 4_800, buffer: 50, seconds: 3) { $0.tells_position = 0 }
        let told = loopback.run(startedAt: Self.date, heard: heard, ownMilliseconds: nil, path: nil, ear: .here)
        #expect(abs(delay(told) - 4_800) < 480, "\(delay(told))")
        let measured = loopback.run(startedAt: Self.date, heard: heard, ownMilliseconds: 50, path: nil, ear: .here)
        #expect(abs(delay(measured) - 4_800) < 4.8, "\(delay(measured))")
        // Nobody's cards delay by more than the whole way.
        let wrong = loopback.run(startedAt: Self.date, heard: heard, ownMilliseconds: 500, path: nil, ear: .here)
        #expect(abs(delay(wrong) - 7_200) < 4.8, "\(delay(wrong))")
        #expect(wrong.facts.contains { $0.value.contains("not taken out") }, "\(wrong.facts)")
    }

    @Test("Speech follows the signal through the cards, and is judged; clocks that are apart change no delay")
    func speech() throws {
        let loopback = CallLoopback(carrierSeconds: 2, speech: Self.speech)
        let heard = try hear(loopback, ticks: 4_800, buffer: 40) {
            $0.tells_position = 1
            $0.ppm = (60, -60)
        }
        let run = loopback.run(startedAt: Self.date, heard: heard, ownMilliseconds: nil, path: nil, ear: .there)
        #expect(abs(delay(run) - 4_800) < 24, "\(delay(run))")
        let drift = try #require(run.measurement.timing.driftPPM)
        #expect(abs(drift.value + 120) < 1, "\(drift)")
        #expect(try #require(run.quality).score > 4.4, "\(String(describing: run.quality))")
        #expect(try #require(run.speech).likeness > 0.98)
        #expect(run.facts.contains { $0.label == "Mouth to ear" && $0.value.hasSuffix("ms, measured") }, "\(run.facts)")
    }

    @Test(
        "A path whose delay grows between clocks that agree is reported as it grows, and not taken for drift of the clocks"
    )
    func slide() throws {
        let loopback = CallLoopback(carrierSeconds: 2, speech: Self.speech)
        // A tick more each 20 ms.
        let heard = try hear(
            loopback, ticks: 4_800, buffer: 50, seconds: 3,
            script: { $0.card.control.cable_delay = 4_800 + UInt32($0.samples.count / 960) })
        let run = loopback.run(startedAt: Self.date, heard: heard, ownMilliseconds: nil, path: nil, ear: .here)
        let points = run.measurement.timing.history.points
        for point in [try #require(points.first), try #require(points.last)] {
            let expected = 4_800 + Double(point.position) / 960
            #expect(abs(point.mean - expected) < 9.6, "\(point) is not \(expected)")
        }
        #expect(abs(heard.clockRate) < 2e-6, "\(heard.clockRate)")
    }

    @Test("A gap in the way is found by the cards as by the call")
    func gap() throws {
        let loopback = CallLoopback(carrierSeconds: 3, speech: Self.speech)
        let heard = try hear(loopback, ticks: 4_800, buffer: 40, seconds: 4) {
            $0.tells_position = 1
            $0.hole_every = 72_000
            $0.hole_length = 960
        }
        let run = loopback.run(startedAt: Self.date, heard: heard, ownMilliseconds: nil, path: nil, ear: .here)
        let timing = run.measurement.timing
        #expect(timing.eventCount == timing.counts[.silence] && (1...2).contains(timing.eventCount), "\(timing.events)")
        for event in timing.events {
            #expect(abs(event.holeSamples - 960) <= 3 && abs(event.delayBefore - 4_800) < 4.8, "\(event)")
        }
    }
}

@Suite("Where the delay of a call comes from")
struct CallPathTests {
    private static let card = CallLoopback.Path.Card(
        microphone: [.init("buffer in", milliseconds: 2), .init("nothing", milliseconds: 0)],
        loudspeaker: [.init("buffer out", milliseconds: 14)])

    private func path(_ card: CallLoopback.Path.Card?) -> CallLoopback.Path {
        CallLoopback.Path(
            networkMilliseconds: 8, jitterBufferMilliseconds: 20, codecMilliseconds: 6.5, frameMilliseconds: 20,
            card: card)
    }

    @Test("A call that plays a file has no card and fills no frame in its parts, and mouth to ear has the frame")
    func file() {
        let stages = path(nil).stages(ofDelay: 80, ear: .here)
        #expect(stages.map(\.milliseconds) == [13, 8, 20, 39])
        let facts = path(nil).mouthToEar(ofDelay: 80, ear: .here)
        #expect(facts.map(\.label) == ["Mouth to ear"] && facts.allSatisfy { $0.value.hasPrefix("60.0 ms without") })
    }

    @Test("There and back through a card is in order from microphone to loudspeaker, and adds up")
    func roundTrip() {
        let stages = path(Self.card).stages(ofDelay: 130, ear: .here)
        #expect(stages.map(\.milliseconds) == [2, 20, 13, 8, 20, 14, 53])
        #expect(stages.first?.name == "buffer in" && stages.dropLast().last?.name == "buffer out")
        let facts = path(Self.card).mouthToEar(ofDelay: 130, ear: .here)
        #expect(facts.first?.value.hasPrefix("65.0 ms") == true, "\(facts)")
        // 2 + 20, 6.5, half of 8, 20 + 14.
        #expect(facts.last?.value.hasPrefix("66.5 ms by the call's statistics") == true, "\(facts)")
    }

    @Test("One way has this side's microphone, half of the network, and leaves the rest to the other side")
    func oneWay() {
        let stages = path(Self.card).stages(ofDelay: 70, ear: .there)
        #expect(stages.map(\.milliseconds) == [2, 20, 6.5, 4, 37.5])
        #expect(path(Self.card).mouthToEar(ofDelay: 70, ear: .there).first?.value == "70.0 ms, measured")
    }

    @Test("Statistics that know of more than was measured leave nothing to the other side")
    func tooMuch() {
        let stages = path(Self.card).stages(ofDelay: 50, ear: .here)
        #expect(stages.count == 6 && !stages.contains { $0.milliseconds <= 0 }, "\(stages)")
    }
}
