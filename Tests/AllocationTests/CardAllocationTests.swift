@testable import AudioDevices
import CAllocationCounter
@testable import MediaEngine
import Peering
import Realtime
import SecureTransport
import Speakerphone
import TestSupport
import Testing

/// Calls on a sound card, run by hand as in ``AllocationTests``; the test holds the card's end of the line.
@Suite("Allocations of calls on a sound card", .serialized)
struct CardAllocationTests {
    @Test("Calls that share a card, with echo, noise, gain and a tone, allocate nothing")
    func steadyState() throws {
        let pair = LinePair()
        var card = pair.device
        var sound = CallSound()
        sound.sharing = .mix
        let desk = UnsafeMutablePointer<SoundDesk>.allocate(capacity: 1)
        desk.initialize(to: try SoundDesk(sound, line: pair.worker))
        defer {
            desk.deinitialize(count: 1)
            desk.deallocate()
        }
        var caller = try HandDrivenWorker()
        var device = try HandDrivenWorker(desk: desk)
        for number in UInt32(1)...3 {
            var generator = SeededGenerator(seed: UInt64(number))
            // With GCM, libsrtp2 allocates the least.
            let (there, back) = (
                SRTPKey.random(.aeadAES128GCM, using: &generator), SRTPKey.random(.aeadAES128GCM, using: &generator)
            )
            try caller.add(
                number: number, to: device.address, local: number * 2, remote: number * 2 + 1, send: there,
                receive: back, audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
            try device.add(
                number: number, to: caller.address, local: number * 2 + 1, remote: number * 2, send: back,
                receive: there, audio: AudioBehaviour(source: .card))
        }
        var captured = [Int16](repeating: 0, count: 4_096)
        for index in captured.indices { captured[index] = Int16(truncatingIfNeeded: index * 7_919) / 8 }
        run(&caller, &device, &card, captured, forFrames: 150)
        let before = Spent(caller, device)
        try device.order(.tone(.ring))
        try device.order(.mute(true))
        try device.order(.volume(dB: -6))
        run(&caller, &device, &card, captured, forFrames: 300)
        try device.order(.tone(nil))
        try device.order(.mute(false))
        run(&caller, &device, &card, captured, forFrames: 300)
        let spent = Spent(caller, device).since(before)

        let turns = desk.pointee.report(on: device.call(0)).turns
        #expect(turns > 300)
        #expect(spent.frames >= 1_200)
        // Each packet costs libsrtp2's own, as AllocationTests finds; a turn of the card costs nothing more.
        let cost = try AllocationTests().libraryCost(.aeadAES128GCM)
        #expect(spent.allocations == spent.media * cost.media + spent.control * cost.control)
    }

    private func run(
        _ caller: inout HandDrivenWorker, _ device: inout HandDrivenWorker, _ card: inout LineEnds,
        _ captured: [Int16], forFrames frames: Int
    ) {
        let (callerEnd, deviceEnd) = (caller.totals().frames + frames, device.totals().frames + frames)
        while caller.totals().frames < callerEnd || device.totals().frames < deviceEnd {
            caller.step()
            device.step()
            // The card's end: it has something to give whenever there is room, and takes what there is.
            _ = card.capturing.write(captured.span)
            drain(&card)
        }
    }

    private func drain(_ card: inout LineEnds) {
        var frame = InlineArray<960, Int16>(repeating: 0)
        var space = frame.mutableSpan
        _ = card.playing.read(into: &space)
        while card.playingMarks.pop() != nil {}
        while card.capturingMarks.pop() != nil {}
    }

    private struct Spent {
        var allocations: Int64
        var frames: Int64
        var media: Int64
        var control: Int64

        init(_ caller: borrowing HandDrivenWorker, _ device: borrowing HandDrivenWorker) {
            allocations = handset_test_allocations()
            let (one, other) = (caller.totals(), device.totals())
            frames = Int64(one.frames + other.frames)
            media = Int64(one.media + other.media)
            control = Int64(one.control + other.control)
        }

        func since(_ earlier: Self) -> Self {
            var difference = self
            difference.allocations -= earlier.allocations
            difference.frames -= earlier.frames
            difference.media -= earlier.media
            difference.control -= earlier.control
            return difference
        }
    }
}
