import AudioKit
import AudioPort
import Realtime
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

@Suite("Sound that changes while a call runs")
struct RunningSoundTests {
    private static func take(_ ring: inout AudioRing.Consumer) -> [Int16] {
        var samples = [Int16](repeating: 0, count: 1 << 18)
        var room = samples.mutableSpan
        let count = ring.read(into: &room)
        return Array(samples[..<count])
    }

    private static func power(_ samples: some Collection<Int16>) -> Double {
        samples.reduce(0) { $0 + Double($1) * Double($1) } / Double(max(1, samples.count))
    }

    /// Gives a call a change as its worker does, and frees what comes back.
    private static func change(_ call: UnsafeMutablePointer<MediaCall>, _ change: consuming AudioChange) {
        let memory = UnsafeMutablePointer<AudioChange>.allocate(capacity: 1)
        memory.initialize(to: change)
        call.pointee.change(memory)
        memory.deinitialize(count: 1)
        memory.deallocate()
    }

    private static func announcement(_ samples: [Int16], number: UInt64) -> AudioChange {
        let ring = AudioRing(capacity: 1 << 16)
        var producer = ring.producer
        _ = producer.write(samples.span)
        producer.close()
        var change = AudioChange(.announcement(number: number), installs: true)
        change.player = .some(ring.consumer)
        return change
    }

    /// A call whose right side has this source, and records both sides.
    private static func call(
        _ source: AudioBehaviour.Source, line: consuming PortLine? = nil, _ heard: consuming AudioRing.Producer,
        _ sent: consuming AudioRing.Producer
    ) throws -> VirtualCall {
        var rings = CallRings()
        rings.recorder = .some(heard)
        rings.sentRecorder = .some(sent)
        rings.line = line
        return try VirtualCall(rightRings: rings) { plan in
            if plan.peer.localSSRC == 2 { plan.audio = AudioBehaviour(source: source, recording: "") }
        }
    }

    @Test(
        "A call that is joined while its peer sends a key is heard from the first packet behind the key on, loud within 5 ms"
    )
    func joinedInKey() throws {
        var call = try VirtualCall {
            $0.peer.telephoneEvents = [.init(clockRate: 48_000, sendPayloadType: 110, receivePayloadType: 110)]
        }
        try call.run(seconds: 2)
        call.left.pointee.press(5)
        // The key's end has come, and two packets more repeat it.
        try call.run(seconds: 0.12)
        let lines = BridgeLines.make()
        var change = AudioChange(.bridge, installs: true)
        change.line = .some(lines.one)
        change.waitsForSound = true
        Self.change(call.right, change)
        var other = lines.other
        var frame = [Int16](repeating: 0, count: 960)
        var silent = 0
        while silent < 15 {
            try call.run(seconds: 0.02)
            var room = frame.mutableSpan
            if other.hasSound(lookingInto: &room) { break }
            silent += 1
        }
        // Not after the wait's end, and loud behind the 5 ms in which the jitter buffer fades from what it has made up.
        #expect((1...4).contains(silent), "\(silent) frames")
        for start in stride(from: 240, to: 960, by: 240) {
            #expect(frame[start..<(start + 240)].contains { $0.magnitude > 4_000 }, "from sample \(start)")
        }
    }

    @Test("Both channels of a recording are aligned to the sample: an echo's are the same")
    func alignment() throws {
        let heard = AudioRing(capacity: 1 << 18)
        let sent = AudioRing(capacity: 1 << 18)
        var left = heard.consumer
        var right = sent.consumer
        var call = try Self.call(.echo, heard.producer, sent.producer)
        try call.run(seconds: 1)
        let (said, returned) = (Self.take(&left), Self.take(&right))
        #expect(said == returned && said.count > 40_000 && Self.power(said) > 1e7)
    }

    @Test("A recording whose disk is slow loses the same samples of both channels, and counts them")
    func overrun() throws {
        let heard = AudioRing(capacity: 16_384)
        let sent = AudioRing(capacity: 8_192)
        var left = heard.consumer
        var right = sent.consumer
        var call = try Self.call(.echo, heard.producer, sent.producer)
        try call.run(seconds: 1)
        let (said, returned) = (Self.take(&left), Self.take(&right))
        #expect(said == returned && (7_000...8_192).contains(said.count))
        #expect(call.right.pointee.report().recordOverrunSamples > 30_000)
    }

    @Test("A recording begins and ends in mid-call")
    func midCall() throws {
        var call = try VirtualCall()
        try call.run(seconds: 0.4)
        let heard = AudioRing(capacity: 1 << 18)
        let sent = AudioRing(capacity: 1 << 18)
        var left = heard.consumer
        var right = sent.consumer
        var begin = AudioChange(.recording, installs: true, recordsSent: true)
        begin.recorder = .some(heard.producer)
        begin.sentRecorder = .some(sent.producer)
        Self.change(call.right, begin)
        try call.run(seconds: 0.5)
        Self.change(call.right, AudioChange(.recording, installs: false))
        try call.run(seconds: 0.5)
        let (said, silent) = (Self.take(&left), Self.take(&right))
        #expect(said.count == 24_000 && silent.count == 24_000)
        #expect(Self.power(said) > 1e7 && Self.power(silent) == 0)
        let areOver = (left.hasEnded(), right.hasEnded())
        #expect(areOver.0 && areOver.1)
    }

    @Test("A file is heard in place of the source, whole except 5 ms of fading in, and its end is reported once")
    func announcement() throws {
        let heard = AudioRing(capacity: 1 << 18)
        let sent = AudioRing(capacity: 1 << 18)
        var right = sent.consumer
        var call = try Self.call(.silence, heard.producer, sent.producer)
        try call.run(seconds: 0.4)
        _ = Self.take(&right)
        let file = [Int16](repeating: 1_000, count: 2_500)
        Self.change(call.right, Self.announcement(file, number: 7))
        try call.run(seconds: 0.02)
        #expect(call.right.pointee.takeAnnouncementEnd() == nil)
        try call.run(seconds: 0.2)
        #expect(call.right.pointee.takeAnnouncementEnd() == 7)
        #expect(call.right.pointee.takeAnnouncementEnd() == nil)
        let played = Self.take(&right)
        #expect(played[240..<2_500].allSatisfy { $0 == 1_000 } && played[..<240].allSatisfy { $0 < 1_000 })
        #expect(played[2_500...].allSatisfy { $0 == 0 })
    }

    @Test("A file that is stopped fades out within 5 ms, and the source is heard again")
    func stop() throws {
        let heard = AudioRing(capacity: 1 << 18)
        let sent = AudioRing(capacity: 1 << 18)
        var right = sent.consumer
        var call = try Self.call(.silence, heard.producer, sent.producer)
        try call.run(seconds: 0.4)
        Self.change(call.right, Self.announcement([Int16](repeating: 1_000, count: 40_000), number: 1))
        try call.run(seconds: 0.2)
        _ = Self.take(&right)
        Self.change(call.right, AudioChange(.announcement(number: 1), installs: false))
        try call.run(seconds: 0.2)
        let after = Self.take(&right)
        #expect(after[0] > 900 && after[240...].allSatisfy { $0 == 0 })
        #expect(zip(after, after.dropFirst()).allSatisfy { abs(Int($0) - Int($1)) <= 5 }, "there is no click")
        #expect(call.right.pointee.takeAnnouncementEnd() == nil)
    }

    @Test("While a file is played a program hears the peer, and its own sound waits and is not lost")
    func hold() throws {
        let pair = AudioPort.pair(rate: .hz48000, signal: try PortSignal())
        var port = pair.port
        let heard = AudioRing(capacity: 1 << 18)
        let sent = AudioRing(capacity: 1 << 18)
        var right = sent.consumer
        var call = try Self.call(.program, line: .some(pair.line), heard.producer, sent.producer)
        try call.run(seconds: 0.4)
        var (events, caller): ([PlaybackEvent], [Int16]) = ([], [])
        port.read(into: &caller)
        Self.change(call.right, Self.announcement([Int16](repeating: 1_000, count: 9_600), number: 1))
        _ = port.write([Int16](repeating: 2_000, count: 4_800).span, at: call.now)
        _ = port.mark("said")
        caller = []
        try call.run(seconds: 0.18)
        port.update(at: call.now, isFinal: false, into: &events)
        port.read(into: &caller)
        #expect(events == [] && port.played == 0 && port.isSuspended)
        #expect(caller.count == 9 * 960 && Self.power(caller) > 1e7)
        try call.run(seconds: 0.2)
        port.update(at: call.now, isFinal: false, into: &events)
        #expect(events == [.played(mark: "said", played: 4_800)] && !port.isSuspended)
        let loud = Self.take(&right).count { $0 == 2_000 }
        #expect((4_300...4_800).contains(loud))
    }

    @Test("A file that has ended does not stop one that has begun since")
    func secondAnnouncement() throws {
        let heard = AudioRing(capacity: 1 << 18)
        let sent = AudioRing(capacity: 1 << 18)
        var right = sent.consumer
        var call = try Self.call(.silence, heard.producer, sent.producer)
        try call.run(seconds: 0.4)
        Self.change(call.right, Self.announcement([Int16](repeating: 1_000, count: 960), number: 1))
        try call.run(seconds: 0.1)
        #expect(call.right.pointee.takeAnnouncementEnd() == 1)
        Self.change(call.right, Self.announcement([Int16](repeating: 2_000, count: 9_600), number: 2))
        _ = Self.take(&right)
        // The control side learns of the first one's end only now.
        Self.change(call.right, AudioChange(.announcement(number: 1), installs: false))
        try call.run(seconds: 0.3)
        #expect(Self.take(&right).count { $0 == 2_000 } >= 9_600 - 480)
        #expect(call.right.pointee.takeAnnouncementEnd() == 2)
        Self.change(call.right, AudioChange(.announcement(number: 2), installs: false))
    }

    @Test("A program that joins a call gets positions since the beginning of the call's sound")
    func joiningPosition() throws {
        let heard = AudioRing(capacity: 1 << 18)
        let sent = AudioRing(capacity: 1 << 18)
        var left = heard.consumer
        var call = try Self.call(.silence, heard.producer, sent.producer)
        var lengths: [Int] = []
        for _ in 1...2 {
            try call.run(seconds: 0.4)
            lengths.append(Self.take(&left).count)
            let pair = AudioPort.pair(rate: .hz48000, signal: try PortSignal())
            var join = AudioChange(.line, installs: true)
            join.line = .some(pair.line)
            Self.change(call.right, join)
        }
        let memory = UnsafeMutablePointer<AudioChange>.allocate(capacity: 1)
        defer { memory.deallocate() }
        memory.initialize(to: AudioChange(.line, installs: false))
        call.right.pointee.change(memory)
        let start = memory.pointee.line?.start
        memory.deinitialize(count: 1)
        #expect(lengths[0] > 0 && lengths[1] > 0 && start == lengths[0] + lengths[1])
    }

    @Test(
        "A program that is attached is heard in place of the source and hears the peer, and the source is back when it leaves"
    )
    func attach() throws {
        let pair = AudioPort.pair(rate: .hz48000, signal: try PortSignal())
        var port = pair.port
        let heard = AudioRing(capacity: 1 << 18)
        let sent = AudioRing(capacity: 1 << 18)
        var right = sent.consumer
        var call = try Self.call(.echo, heard.producer, sent.producer)
        try call.run(seconds: 0.4)
        _ = Self.take(&right)
        var join = AudioChange(.line, installs: true)
        join.line = .some(pair.line)
        Self.change(call.right, join)
        try call.run(seconds: 0.3)
        var caller: [Int16] = []
        port.read(into: &caller)
        #expect(Self.power(caller) > 1e7 && !port.isOver)
        #expect(Self.power(Self.take(&right).dropFirst(480)) == 0, "the program says nothing")
        Self.change(call.right, AudioChange(.line, installs: false))
        try call.run(seconds: 0.3)
        #expect(Self.power(Self.take(&right)) > 1e7)
        caller = []
        port.read(into: &caller)
        let isOver = port.isOver
        #expect(isOver && caller.isEmpty)
    }
}
