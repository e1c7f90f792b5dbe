import AudioKit
import AudioPort
import CThreadCounters
import Glibc
import Meetings
import Realtime
import Testing

/// Calls of a mixer, in virtual time: frames of lines and ticks of the mixer, in the order that a test wants.
@Suite("Mixing of meetings", .serialized)
struct MeetingMixerTests {
    /// A call that sends a tone, and keeps what it receives.
    private final class Caller {
        var line: PortLine
        var tone: ToneGenerator
        var isSilent = false
        private(set) var heard: [Int16] = []
        private var (sent, received) = ([Int16](repeating: 0, count: 960), [Int16](repeating: 0, count: 960))

        init(_ line: consuming PortLine, _ frequencyHz: Double, levelDBFS: Double = -20) {
            self.line = line
            tone = ToneGenerator(frequencyHz: frequencyHz, levelDBFS: levelDBFS)
            heard.reserveCapacity(1 << 20)
        }

        func frame() {
            var room = sent.mutableSpan
            if isSilent { Silence.fill(&room) } else { tone.fill(&room) }
            Self.exchange(&line, sent, &received)
        }

        /// A frame in which it hears something else, such as a file.
        func hold() {
            var room = sent.mutableSpan
            tone.fill(&room)
            Self.hold(&line, sent, &received)
        }

        private static func hold(_ line: inout PortLine, _ sent: [Int16], _ received: inout [Int16]) {
            line.hold(received: sent.span, sending: received.mutableSpan)
        }

        private static func exchange(_ line: inout PortLine, _ sent: [Int16], _ received: inout [Int16]) {
            var answer = received.mutableSpan
            line.exchange(received: sent.span, sending: &answer)
        }

        func keep() { heard += received }

        /// The amplitude of a tone in the last second of what was heard.
        func amplitude(_ frequencyHz: Double) -> Double {
            let samples = heard.suffix(48_000)
            var (cosine, sine) = (0.0, 0.0)
            for (index, sample) in samples.enumerated() {
                let angle = 2 * Double.pi * frequencyHz * Double(index) / 48_000
                let (x, y) = (angle.truncatingRemainder(dividingBy: 2 * .pi), Double(sample))
                cosine += y * cos(x)
                sine += y * sin(x)
            }
            return 2 * (cosine * cosine + sine * sine).squareRoot() / Double(max(samples.count, 1))
        }
    }

    private struct Stage: ~Copyable {
        var mixer: MeetingMixer
        var desk: MeetingDesk
        var callers: [Caller] = []
        var reports: [MeetingDesk.Report] = []

        init() {
            let pair = MeetingDesk.pair()
            mixer = pair.mixer
            desk = pair.desk
            desk.open(1)
        }

        mutating func add(_ frequencyHz: Double, levelDBFS: Double = -20) {
            let member = UInt64(callers.count + 1)
            let line = desk.seat(member, in: 1, isMuted: false)
            callers.append(Caller(line, frequencyHz, levelDBFS: levelDBFS))
        }

        mutating func run(seconds: Double) {
            for _ in 0..<Int(seconds * 50) {
                for caller in callers {
                    caller.frame()
                    caller.keep()
                }
                _ = mixer.tick()
                desk.takeReports(into: &reports)
            }
        }
    }

    /// Samples after which the second of two hears the first.
    private func delay(_ stage: inout Stage) -> Int {
        for caller in stage.callers { caller.isSilent = true }
        stage.run(seconds: 0.8)
        stage.callers[0].isSilent = false
        let before = stage.callers[1].heard.count
        stage.run(seconds: 0.2)
        let first = stage.callers[1].heard.dropFirst(before).firstIndex { $0.magnitude > 100 } ?? .max
        return first - before
    }

    /// -20 dBFS.
    private static let full = 3_276.0

    @Test("Of three who speak, each hears the two others and not itself")
    func threeSpeak() {
        var stage = Stage()
        let tones = [500.0, 900, 1_300]
        for tone in tones { stage.add(tone) }
        stage.run(seconds: 2)
        for (own, caller) in stage.callers.enumerated() {
            for (index, tone) in tones.enumerated() {
                let amplitude = caller.amplitude(tone)
                if index == own { #expect(amplitude < 2) } else { #expect(abs(amplitude - Self.full) < 50) }
            }
        }
        #expect(stage.reports.count { if case .present = $0 { true } else { false } } == 3)
        #expect(stage.reports.contains(.heard(2, true)))
    }

    @Test("A fourth, fainter speaker is not heard, and hears the three")
    func fourth() {
        var stage = Stage()
        for tone in [500.0, 900, 1_300] { stage.add(tone) }
        stage.add(1_700, levelDBFS: -23)
        stage.run(seconds: 2)
        #expect(stage.callers[0].amplitude(1_700) < 2)
        for tone in [500.0, 900, 1_300] { #expect(abs(stage.callers[3].amplitude(tone) - Self.full) < 50) }
    }

    @Test("A muted member is not heard, and hears the others")
    func muted() {
        var stage = Stage()
        for tone in [500.0, 900] { stage.add(tone) }
        stage.desk.mute(1, in: 1, true)
        stage.run(seconds: 2)
        #expect(stage.callers[1].amplitude(500) < 2)
        #expect(abs(stage.callers[0].amplitude(900) - Self.full) < 50)
        stage.desk.mute(1, in: 1, false)
        stage.run(seconds: 2)
        #expect(abs(stage.callers[1].amplitude(500) - Self.full) < 50)
    }

    @Test("A meeting of one hears silence, and the tone of the next who joins")
    func alone() {
        var stage = Stage()
        stage.add(500)
        stage.run(seconds: 2)
        #expect(stage.callers[0].heard.allSatisfy { $0 == 0 })
        stage.desk.sound(.entry, in: 1)
        stage.run(seconds: 0.2)
        #expect(stage.callers[0].heard.suffix(9_600).contains { $0.magnitude > 1_000 })
        stage.run(seconds: 1.1)
        #expect(stage.callers[0].amplitude(880) < 2)
    }

    @Test("A frame is heard by the other one or two frames later, which is at most 20 ms after a direct bridge")
    func delay() {
        var stage = Stage()
        stage.add(500)
        stage.add(900)
        // Both lines run at the same moment here, so a direct bridge takes a frame, of which the fade-in hides the beginning.
        #expect(delay(&stage) <= 2 * 960)
    }

    @Test("A member to which a file was played hears the room without delay at once")
    func file() {
        var stage = Stage()
        stage.add(500)
        stage.add(900)
        let before = delay(&stage)
        for _ in 0..<100 {
            stage.callers[0].frame()
            stage.callers[1].hold()
            _ = stage.mixer.tick()
        }
        #expect(abs(delay(&stage) - before) < 240)
    }

    @Test("After a stall of the mixer of 80 ms the delay is as before within 9 s, in one step")
    func stall() {
        var stage = Stage()
        stage.add(500)
        stage.add(900)
        let before = delay(&stage)
        for _ in 0..<4 { for caller in stage.callers { caller.frame() } }
        for _ in 0..<4 { _ = stage.mixer.tick() }
        #expect(delay(&stage) > before + 2 * 960)
        stage.run(seconds: 7)
        #expect(abs(delay(&stage) - before) < 240)
    }

    @Test("Frames that a ring did not need for 4 s are left out at once, and for longer when that is due again soon")
    func cushion() {
        var cushion = RingCushion()
        func run(_ waiting: Int, ticks: Int) -> [Int] {
            (0..<ticks).map { _ in cushion.surplus(of: waiting) }.filter { $0 > 0 }
        }
        #expect(run(3 * 960 + 100, ticks: 199) == [])
        #expect(cushion.surplus(of: 3 * 960 + 100) == 3)
        #expect(run(959, ticks: 399) == [])
        // A window of 4 s without need, and then one of 8 s, because this is the second within 16 s.
        #expect(run(960, ticks: 200) == [])
        #expect(cushion.surplus(of: 960) == 1)
        #expect(run(960, ticks: 399) == [])
        #expect(cushion.surplus(of: 960) == 1)
    }

    @Test("A member that never reads holds 80 ms at most, and the others hear each other")
    func neverReads() {
        var stage = Stage()
        for tone in [500.0, 900] { stage.add(tone) }
        // It neither reads nor writes.
        let idle = stage.desk.seat(9, in: 1, isMuted: false)
        stage.run(seconds: 5)
        #expect(abs(stage.callers[0].amplitude(900) - Self.full) < 50)
        let late = Caller(idle, 500)
        late.isSilent = true
        var frames = 0
        for _ in 0..<20 {
            late.frame()
            let before = late.heard.count
            late.keep()
            if late.heard.dropFirst(before).contains(where: { $0 != 0 }) { frames += 1 }
        }
        #expect(frames <= 6)
    }

    @Test("A member that vanishes is reported, and unseating it frees its seat")
    func vanishes() {
        var stage = Stage()
        for tone in [500.0, 900] { stage.add(tone) }
        stage.run(seconds: 1)
        stage.callers[0].line.finish()
        let survivor = stage.callers[1]
        for _ in 0..<100 {
            survivor.frame()
            survivor.keep()
            _ = stage.mixer.tick()
            stage.desk.takeReports(into: &stage.reports)
        }
        #expect(stage.reports.contains(.gone(1)))
        #expect(survivor.heard.suffix(48_000).allSatisfy { $0 == 0 })
        stage.desk.close(1)
        _ = stage.mixer.tick()
        stage.desk.takeReports(into: &stage.reports)
        let isIdle = stage.mixer.isIdle
        #expect(isIdle)
    }

    @Test(
        "A member whose clock is 1,000 ppm fast or slow keeps its delay below 100 ms for ten minutes",
        arguments: [-1_000.0, 1_000])
    func drift(ppm: Double) {
        var stage = Stage()
        stage.add(500)
        stage.add(900)
        let (one, other) = (stage.callers[0], stage.callers[1])
        var owed = 0.0
        for _ in 0..<30_000 {
            owed += 1 + ppm / 1e6
            while owed >= 1 {
                one.frame()
                owed -= 1
            }
            other.frame()
            _ = stage.mixer.tick()
        }
        // Silence shows how much waits: what is heard of the tone after its end.
        one.isSilent = true
        var frames = 0
        for _ in 0..<20 {
            one.frame()
            other.frame()
            let before = other.heard.count
            other.keep()
            if other.heard.dropFirst(before).contains(where: { $0.magnitude > 500 }) { frames += 1 }
            _ = stage.mixer.tick()
        }
        #expect(frames <= 5)
    }

    @Test("10,000 frames of 20 members, four of which speak by turns, allocate nothing and take no lock")
    func allocatesNothing() {
        let pair = MeetingDesk.pair()
        var mixer = pair.mixer
        var desk = pair.desk
        desk.open(1)
        let callers = (1...20).map { Caller(desk.seat(UInt64($0), in: 1, isMuted: false), 300 + 100 * Double($0)) }
        for caller in callers { caller.isSilent = true }
        var (allocations, locks): (Int64, Int64) = (0, 0)
        func run(_ frames: Int) {
            (allocations, locks) = (0, 0)
            for frame in 0..<frames {
                for (index, caller) in callers.enumerated() {
                    caller.isSilent = index >= 4 || (frame / 100) % 4 == index
                    caller.frame()
                }
                let before = (handset_test_allocations(), handset_test_locks())
                _ = mixer.tick()
                allocations += handset_test_allocations() - before.0
                locks += handset_test_locks() - before.1
            }
        }
        run(500)
        run(10_000)
        #expect(allocations == 0)
        #expect(locks == 0)
    }
}
