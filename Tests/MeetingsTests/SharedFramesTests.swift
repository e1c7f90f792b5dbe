import AudioKit
import AudioPort
import CThreadCounters
import Glibc
import Meetings
import Realtime
import TestSupport
import Testing

/// Frames that a meeting encodes once for several members: members are lines that send as a call does.
@Suite("Frames that members share", .serialized)
struct SharedFramesTests {
    private final class Member {
        var line: PortLine
        var settings: EncoderSettings?
        /// Sends the frames that it gets.
        var follows = false
        /// Takes no independent frame.
        var refuses = false
        var isLoud = false
        private(set) var frame: SharedFrame?
        private(set) var heard = [Int16](repeating: 0, count: 960)
        private var said = [Int16](repeating: 0, count: 960)
        private var generator: SeededGenerator

        init(_ line: consuming PortLine, _ number: Int, _ settings: EncoderSettings?) {
            self.line = line
            self.settings = settings
            generator = SeededGenerator(seed: UInt64(number))
        }

        func run() {
            line.note(settings.map { follows ? .follows($0) : .ready($0) } ?? .alone)
            for index in said.indices { said[index] = isLoud ? Int16.random(in: -3_000...3_000, using: &generator) : 0 }
            Self.exchange(&line, said, &heard)
            frame = line.takeSharedFrame()
            guard let frame, frame.settings == settings else { return follows = false }
            if frame.isIndependent, !refuses { follows = true }
        }

        private static func exchange(_ line: inout PortLine, _ said: [Int16], _ heard: inout [Int16]) {
            var room = heard.mutableSpan
            line.exchange(received: said.span, sending: &room)
        }
    }

    private struct Stage: ~Copyable {
        var mixer: MeetingMixer
        var desk: MeetingDesk
        var members: [Member] = []
        private var reports: [MeetingDesk.Report] = []

        init(_ settings: [EncoderSettings?]) {
            let pair = MeetingDesk.pair()
            mixer = pair.mixer
            desk = pair.desk
            desk.open(1)
            for settings in settings {
                let number = members.count + 1
                members.append(Member(desk.seat(UInt64(number), in: 1, isMuted: false), number, settings))
            }
        }

        mutating func run(frames: Int, _ each: ([Member]) -> Void = { _ in }) {
            for _ in 0..<frames {
                for member in members { member.run() }
                each(members)
                tick()
            }
        }

        mutating func tick() {
            _ = mixer.tick()
            desk.takeReports(into: &reports)
        }
    }

    private static func alike(_ count: Int, bitrateBps: Int = 32_000) -> [EncoderSettings?] {
        var settings = EncoderSettings()
        settings.bitrateBps = bitrateBps
        return Array(repeating: settings, count: count)
    }

    @Test("Four who listen and encode alike send the same frames, from an independent one on")
    func shared() {
        var stage = Stage(Self.alike(5))
        stage.members[0].isLoud = true
        var independent = 0
        stage.run(frames: 50) { members in if members[1].frame?.isIndependent == true { independent += 1 } }
        #expect(independent == 1)
        #expect(stage.members.dropFirst().allSatisfy { $0.follows })
        var frames = 0
        stage.run(frames: 50) { members in
            let packets = members.dropFirst().map { $0.frame?.packet }
            #expect(Set(packets).count == 1)
            if packets[0] != nil { frames += 1 }
            #expect(members[0].frame == nil)
        }
        #expect(frames == 50)
    }

    @Test("One who has spoken gets a frame to begin with when it listens again")
    func returns() {
        var stage = Stage(Self.alike(5))
        stage.members[0].isLoud = true
        stage.run(frames: 50)
        stage.members[0].isLoud = false
        stage.members[1].isLoud = true
        var independent = 0
        stage.run(frames: 150) { members in if members[2].frame?.isIndependent == true { independent += 1 } }
        #expect(stage.members[0].follows)
        #expect(!stage.members[1].follows)
        #expect(independent == 1)
    }

    @Test("Three who encode alike, and those who do not, encode for themselves")
    func few() {
        var stage = Stage(Self.alike(3) + Self.alike(3, bitrateBps: 24_000) + [nil, nil, nil, nil])
        stage.run(frames: 500) { members in #expect(members.allSatisfy { $0.frame == nil }) }
    }

    @Test("Four ways to encode are shared, and no fifth")
    func most() {
        var stage = Stage((1...5).flatMap { Self.alike(4, bitrateBps: 10_000 * $0) })
        stage.run(frames: 500)
        #expect(stage.members.count { $0.follows } == 16)
    }

    @Test("An encoder that too few need goes after 5 s, and comes back")
    func goes() {
        var stage = Stage(Self.alike(4))
        stage.run(frames: 50)
        let settings = stage.members[0].settings
        stage.members[0].settings = nil
        stage.run(frames: 240)
        #expect(stage.members[1].frame != nil)
        stage.run(frames: 20)
        #expect(stage.members[1].frame == nil)
        stage.members[0].settings = settings
        stage.run(frames: 50)
        #expect(stage.members.allSatisfy { $0.follows })
    }

    @Test("Who takes no independent frame is offered five, 100 ms apart, and again when its way to send changes")
    func refuses() {
        var stage = Stage(Self.alike(5))
        stage.members[0].refuses = true
        var (independent, last, shortest) = (0, -100, 100)
        for frame in 0..<500 {
            stage.run(frames: 1)
            guard stage.members[1].frame?.isIndependent == true else { continue }
            (independent, shortest, last) = (independent + 1, min(shortest, frame - last), frame)
        }
        #expect((5...6).contains(independent))
        #expect(shortest >= 5)
        let settings = stage.members[0].settings
        stage.members[0].settings = nil
        stage.run(frames: 5)
        stage.members[0].settings = settings
        stage.members[0].refuses = false
        stage.run(frames: 20)
        #expect(stage.members[0].follows)
    }

    @Test("A frame is of the samples that its member was provided, also while members stall and frames are left out")
    func samples() {
        var stage = Stage(Self.alike(8))
        stage.members[0].isLoud = true
        var generator = SeededGenerator(seed: 5)
        var sounds: [[UInt8]: [Int16]] = [:]
        var (frames, differences, stalled) = (0, 0, 0)
        for tick in 0..<3_000 {
            for (number, member) in stage.members.enumerated() {
                // Members stall by turns, and make up for it.
                let isStalled =
                    number > 0 && tick / 16 % 7 + 1 == number && Int.random(in: 0..<3, using: &generator) == 0
                stalled += isStalled ? 1 : 0
                for _ in 0..<(isStalled ? 0 : tick % 16 == 0 ? 2 : 1) {
                    member.run()
                    guard let packet = member.frame?.packet else { continue }
                    frames += 1
                    if let former = sounds[packet], former != member.heard { differences += 1 }
                    sounds[packet] = member.heard
                }
            }
            stage.tick()
        }
        #expect(stalled > 500)
        #expect(frames > 10_000)
        #expect(differences == 0)
    }

    @Test("A meeting that ends gives its encoders back")
    func ends() {
        var stage = Stage(Self.alike(4))
        stage.run(frames: 50)
        stage.desk.close(1)
        stage.run(frames: 2)
        let isIdle = stage.mixer.isIdle
        #expect(isIdle)
    }

    @Test("10,000 frames of 20 members that share allocate nothing and take no lock")
    func allocatesNothing() {
        var stage = Stage(Self.alike(10) + Self.alike(10, bitrateBps: 24_000))
        stage.run(frames: 200)
        var (allocations, locks): (Int64, Int64) = (0, 0)
        for frame in 0..<10_000 {
            for (number, member) in stage.members.enumerated() {
                member.isLoud = frame / 100 % 20 == number
                let before = (handset_test_allocations(), handset_test_locks())
                member.run()
                allocations += handset_test_allocations() - before.0
                locks += handset_test_locks() - before.1
            }
            let before = (handset_test_allocations(), handset_test_locks())
            _ = stage.mixer.tick()
            allocations += handset_test_allocations() - before.0
            locks += handset_test_locks() - before.1
        }
        #expect(stage.members.count { $0.follows } >= 16)
        #expect(allocations == 0)
        #expect(locks == 0)
    }
}

extension SharedFrame {
    fileprivate var packet: [UInt8] { (0..<count).map { bytes[$0] } }
}
