@testable import AudioDevices
import CThreadCounters
@testable import CallMedia
@testable import MediaEngine
import Realtime
import SecureTransport
import AudioKit
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
        let mixer = UnsafeMutablePointer<CardMixer>.allocate(capacity: 1)
        mixer.initialize(to: try CardMixer(sound, line: pair.worker))
        defer {
            mixer.deinitialize(count: 1)
            mixer.deallocate()
        }
        var caller = try HandDrivenWorker()
        var device = try HandDrivenWorker(mixer: mixer)
        for number in UInt32(1)...3 {
            var generator = SeededGenerator(seed: UInt64(number))
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
        device.order(.tone(.ring))
        device.order(.mute(true))
        device.order(.volume(dB: -6))
        run(&caller, &device, &card, captured, forFrames: 300)
        device.order(.tone(nil))
        device.order(.mute(false))
        run(&caller, &device, &card, captured, forFrames: 300)
        let spent = Spent(caller, device).since(before)

        let ticks = mixer.pointee.report(on: CardCall(device.call(0))).ticks
        #expect(ticks > 300)
        #expect(spent.frames >= 1_200)
        #expect(spent.allocations == 0)
        #expect(spent.locks == 0)
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
        var locks: Int64
        var frames: Int64
        var media: Int64
        var control: Int64

        init(_ caller: borrowing HandDrivenWorker, _ device: borrowing HandDrivenWorker) {
            allocations = handset_test_allocations()
            locks = handset_test_locks()
            let (one, other) = (caller.totals(), device.totals())
            frames = Int64(one.frames + other.frames)
            media = Int64(one.media + other.media)
            control = Int64(one.control + other.control)
        }

        func since(_ earlier: Self) -> Self {
            var difference = self
            difference.allocations -= earlier.allocations
            difference.locks -= earlier.locks
            difference.frames -= earlier.frames
            difference.media -= earlier.media
            difference.control -= earlier.control
            return difference
        }
    }
}
