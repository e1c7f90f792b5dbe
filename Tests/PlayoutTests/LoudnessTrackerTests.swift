import Testing

@testable import Playout

@Suite struct LoudnessTrackerTests {
    /// 20 ms of a square wave of `amplitude`, as if about to be played.
    private func frame(_ amplitude: Int16) -> SyncBuffer {
        var buffer = SyncBuffer()
        var room = buffer.room
        for index in 0..<960 { room[index] = index % 200 < 100 ? amplitude : -amplitude }
        buffer.append(960)
        return buffer
    }

    private func tracker(after amplitudes: [Int16]) -> LoudnessTracker {
        var tracker = LoudnessTracker()
        for amplitude in amplitudes {
            let frame = frame(amplitude)
            tracker.listen(to: frame)
        }
        return tracker
    }

    @Test("Next to speech, a closure is quiet but not silent, and a pause is both")
    func levels() {
        let speech = [Int16](repeating: 8_000, count: 50)
        let loud = tracker(after: speech)
        let closure = tracker(after: speech + [200])
        let pause = tracker(after: speech + [30])
        #expect(!loud.isQuiet && !loud.isSilent)
        #expect(closure.isQuiet && !closure.isSilent)
        #expect(pause.isQuiet && pause.isSilent)
    }

    @Test("Sound at the foot of the scale is silence, after any sound")
    func absolute() {
        #expect(tracker(after: [4]).isSilent)
        #expect(tracker(after: [Int16](repeating: 4, count: 500)).isSilent)
    }

    @Test("A talker who grows quieter is heard as speech again within seconds")
    func adapts() {
        let changed = tracker(after: [Int16](repeating: 16_000, count: 50) + [Int16](repeating: 500, count: 400))
        #expect(!changed.isQuiet)
    }
}
