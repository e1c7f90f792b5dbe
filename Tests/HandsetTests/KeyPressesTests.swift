import Synchronization
import TestSupport
import Testing

@testable import handset

@Suite("Keys that a caller's thread gives")
struct KeyPressesTests {
    @Test("Keys are pressed one after the other, in the order in which they were given")
    func inOrder() async throws {
        let keys = Array("0123456789*#ABCD")
        let pressed = Mutex<[Character]>([])
        let isPressing = Mutex(false)
        let overlaps = Atomic(0)
        let presses = KeyPresses { key in
            let wasPressing = isPressing.withLock { isPressing in
                defer { isPressing = true }
                return isPressing
            }
            if wasPressing { overlaps.add(1, ordering: .relaxed) }
            // Keys take different times, so that a later one would overtake an earlier one.
            for _ in 0..<(keys.firstIndex(of: key) ?? 0) % 3 { await Task {}.value }
            pressed.withLock { $0.append(key) }
            isPressing.withLock { $0 = false }
        }
        for key in keys { presses.press(key) }
        presses.finish()
        try await until { pressed.withLock { $0.count } == keys.count }
        #expect(pressed.withLock { $0 } == keys && overlaps.load(ordering: .relaxed) == 0)
    }
}
