import AudioPort
import Core
import Realtime
import TestSupport
import Testing

@testable import CallMedia

/// The sound of a hand-over in virtual time: two calls whose frames run at times of their own, with a number in each sample.
@Suite("The sound of a hand-over")
struct HandoverSoundTests {
    /// One call, whose peer says numbers, each sample one more than the one before.
    private final class Party {
        private var audio: CallAudioEndpoint
        private var next: Int
        private var said = [Int16](repeating: 0, count: 960)
        private var answer = [Int16](repeating: 0, count: 960)
        /// What the peer hears.
        private(set) var heard: [Int16] = []
        /// Frames that have run.
        private(set) var frames = 0
        /// Frames that its peer is silent for, as while it presses a key.
        private var silent: Int
        /// What the jitter buffer puts there; nil for silence.
        private let madeUp: Int16?
        /// What it puts in place of lost sound.
        static let concealed: Int16 = 25_000

        /// - Parameter first: The first number of its peer.
        init(from first: Int, silentFor frames: Int = 0, filledWith madeUp: Int16? = nil) {
            next = first
            silent = frames
            self.madeUp = madeUp
            audio = CallAudioEndpoint(AudioBehaviour(source: .silence), player: nil, recorder: nil)
            let music = AudioRing(capacity: 1 << 16)
            var change = AudioChange(.announcement(number: 1), installs: true)
            change.player = .some(music.consumer)
            audio.change(&change)
            var writer = music.producer
            let sound = [Int16](repeating: HandoverSoundTests.music, count: 48_000)
            _ = writer.write(sound.span)
        }

        func join(_ line: consuming PortLine) {
            var change = AudioChange(.bridge, installs: true)
            change.line = .some(line)
            change.waitsForSound = true
            change.outlivesAnnouncement = true
            audio.change(&change)
        }

        /// Whether it has just begun to hear the other one.
        func takeOpening() -> Bool {
            defer { audio.noteBridgeOpeningTold() }
            return audio.hasBridgeOpened
        }

        func stopMusic() {
            var change = AudioChange(.announcement(number: 1), installs: false)
            audio.change(&change)
        }

        /// The music begins again, or late.
        func playMusicAgain() {
            let music = AudioRing(capacity: 1 << 16)
            var change = AudioChange(.announcement(number: 2), installs: true)
            change.player = .some(music.consumer)
            change.yieldsToBridge = true
            audio.change(&change)
            var writer = music.producer
            let sound = [Int16](repeating: HandoverSoundTests.music, count: 48_000)
            _ = writer.write(sound.span)
        }

        /// The peer's next packets are lost.
        func lose(frames: Int) { silent = frames }

        /// The number of the next sample that the peer says.
        var nextSaid: Int { next }

        func frame() {
            let isSilent = silent > 0
            let isMadeUp = isSilent && madeUp != nil
            for index in 0..<960 { said[index] = isSilent ? madeUp ?? 0 : Int16(next + index) }
            if !isSilent { next += 960 }
            silent = max(0, silent - 1)
            var room = answer.mutableSpan
            audio.exchange(received: said.span, isMadeUp: isMadeUp, sending: &room)
            heard += answer
            frames += 1
        }
    }

    /// What both hear before they are joined: no number of the other.
    private static let music: Int16 = 31_000

    /// The gap between music and the first sound of the other, and the numbers that follow.
    private func result(_ heard: [Int16], first: Int) -> (gap: Int, numbers: [Int]) {
        let isOther = { (sample: Int16) in (first..<first + 20_000).contains(Int(sample)) }
        let lastMusic = heard.lastIndex(of: Self.music) ?? -1
        // The music falls within 5 ms, and the other rises within 5 ms.
        let rising = heard.indices.dropFirst(lastMusic + 1 + 240).first { isOther(heard[$0]) } ?? heard.count
        return (max(0, rising - lastMusic - 1 - 240), heard.dropFirst(rising + 240).map { Int($0) })
    }

    @Test("In 100 hand-overs there is no gap, and nothing that is said once both are joined is lost")
    func gaps() {
        var random = SeededGenerator(seed: 11)
        var gaps: [Int] = []
        for _ in 0..<100 {
            let (caller, person) = (Party(from: 1), Party(from: 1))
            let lines = BridgeLines.make()
            // Microseconds: a frame of each is due at its own phase, and the orders arrive at a time of theirs.
            let phases = [Int.random(in: 0..<20_000, using: &random), Int.random(in: 0..<20_000, using: &random)]
            let order = Int.random(in: 60_000..<80_000, using: &random)
            // The second order reaches its worker up to 3 ms later.
            let times = [order, order + Int.random(in: 0...3_000, using: &random)]
            var joined = [false, false]
            // The music is stopped up to 30 ms after the other call is heard.
            var stops = [Int.max, Int.max]
            var one: PortLine? = .some(lines.one)
            var other: PortLine? = .some(lines.other)
            var saidWhenJoined: [Int] = []
            for time in stride(from: 0, to: 400_000, by: 10) {
                for (index, party) in [caller, person].enumerated() where time >= phases[index] / 10 * 10 {
                    guard (time - phases[index] / 10 * 10) % 20_000 == 0 else { continue }
                    if !joined[index], time >= times[index] {
                        joined[index] = true
                        if index == 0 {
                            if let line = one.take() { party.join(line) }
                        } else {
                            if let line = other.take() { party.join(line) }
                        }
                        if joined == [true, true] { saidWhenJoined = [caller.nextSaid, person.nextSaid] }
                    }
                    if time >= stops[index] {
                        stops[index] = .max
                        party.stopMusic()
                    }
                    party.frame()
                    if party.takeOpening() { stops[index] = time + Int.random(in: 0...30_000, using: &random) }
                }
            }
            for (listener, speaker) in [(caller, 1), (person, 0)] {
                let (gap, numbers) = result(listener.heard, first: 1)
                gaps.append(gap)
                #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 + 1 })
                // Without what falls and rises, 5 ms each, and the frame in which the other's order was still on its way.
                #expect((numbers.first ?? .max) <= saidWhenJoined[speaker] + 960 + 480)
            }
        }
        #expect(gaps.max() ?? .max <= 1, "\(gaps.sorted().suffix(5))")
    }

    @Test(
        "A person is heard from its first sample on, and until then the caller hears its music without a gap",
        arguments: 0...14, [nil, Party.concealed])
    func firstSound(silentFor frames: Int, madeUp: Int16?) {
        let (caller, person) = (Party(from: 1), Party(from: 1, silentFor: 3 + frames, filledWith: madeUp))
        for _ in 0..<3 {
            caller.frame()
            person.frame()
        }
        let lines = BridgeLines.make()
        caller.join(lines.one)
        person.join(lines.other)
        var heardAt: Int?
        for tick in 0..<25 {
            person.frame()
            caller.frame()
            guard caller.takeOpening() else { continue }
            #expect(heardAt == nil)
            heardAt = tick
            caller.stopMusic()
        }
        #expect(heardAt == frames)
        let (gap, numbers) = result(caller.heard, first: 1)
        #expect(gap <= 1)
        // The first 5 ms rise while the music falls from its last sample, and 5 ms more are not looked at.
        #expect(numbers.first == 480 + 2)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 + 1 })
    }

    @Test(
        "What fills a gap in a call whose peer was heard is passed on to the other one: it conceals a loss there, too")
    func concealment() {
        let lines = BridgeLines.make()
        let (caller, person) = (Party(from: 1), Party(from: 1, filledWith: Party.concealed))
        caller.join(lines.one)
        person.join(lines.other)
        for _ in 0..<4 {
            person.frame()
            caller.frame()
        }
        caller.stopMusic()
        person.lose(frames: 2)
        for _ in 0..<2 {
            person.frame()
            caller.frame()
        }
        #expect(caller.heard.suffix(2 * 960).allSatisfy { $0 == Party.concealed })
    }

    @Test("Music that is opened while the person is waited for ends with its first sound, and is not heard over it")
    func lateMusic() {
        let (caller, person) = (Party(from: 1), Party(from: 1, silentFor: 8))
        let lines = BridgeLines.make()
        caller.join(lines.one)
        person.join(lines.other)
        for tick in 0..<12 {
            if tick == 4 { caller.playMusicAgain() }
            person.frame()
            caller.frame()
            let isMusic = caller.heard.last == Self.music
            #expect(isMusic == (tick < 8), "frame \(tick)")
        }
        // It is stopped some time later, and leaves no trace either.
        let (gap, numbers) = result(caller.heard, first: 1)
        #expect(gap <= 1 && zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 + 1 })
    }

    @Test("A person who says nothing is heard after 0.3 s, so that no music remains")
    func silentPerson() {
        let (caller, person) = (Party(from: 1), Party(from: 1, silentFor: 1_000))
        let lines = BridgeLines.make()
        caller.join(lines.one)
        person.join(lines.other)
        let opening = (0..<30).first { _ in
            person.frame()
            caller.frame()
            return caller.takeOpening()
        }
        #expect(opening == 15)
        caller.stopMusic()
        person.frame()
        caller.frame()
        #expect(caller.heard.last == 0)
    }

    /// A call with a program, whose peer says a number.
    private final class Attended {
        private var audio: CallAudioEndpoint

        init(_ line: consuming PortLine) {
            audio = CallAudioEndpoint(
                AudioBehaviour(source: .program), player: nil, recorder: nil, line: .some(line))
        }

        func change(_ change: inout AudioChange) { audio.change(&change) }

        /// The last sample that the peer hears.
        func frame() -> Int16? {
            let said = [Int16](repeating: 500, count: 960)
            var answer = [Int16](repeating: 0, count: 960)
            var room = answer.mutableSpan
            audio.exchange(received: said.span, sending: &room)
            return answer.last
        }
    }

    @Test("A program that is paused neither hears nor says anything while its call is joined, and continues then")
    func suspended() throws {
        let pair = AudioPort.pair(rate: .hz48000, signal: try PortSignal())
        var port = pair.port
        let call = Attended(pair.line)
        _ = port.write([Int16](repeating: 900, count: 24_000).span, at: .zero)
        for _ in 0..<5 { #expect(call.frame() == 900) }
        let silence = BridgeLines.make()
        var change = AudioChange(.bridge, installs: true)
        change.line = .some(silence.one)
        change.suspendsLine = true
        call.change(&change)
        for _ in 0..<20 { #expect(call.frame() == 0) }
        var heard: [Int16] = []
        port.read(into: &heard)
        #expect(heard.count == 5 * 960)
        var back = AudioChange(.bridge, installs: false)
        call.change(&back)
        for _ in 0..<5 { #expect(call.frame() == 900) }
    }
}
