@testable import MediaEngine
import Synchronization
import Testing

@Suite("The thread of warm-up calls")
struct WarmUpThreadTests {
    @Test("No warm-up call runs once an engine has ended, so that no thread is left")
    func afterEnd() {
        let thread = WarmUpThread()
        final class Count: Sendable { let runs = Atomic<Int>(0) }
        let count = Count()
        #expect(thread.begin { count.runs.add(1, ordering: .relaxed) })
        thread.end()
        #expect(count.runs.load(ordering: .relaxed) == 1)
        _ = thread.begin { count.runs.add(1, ordering: .relaxed) }
        thread.wait()
        #expect(count.runs.load(ordering: .relaxed) == 1)
    }
}
