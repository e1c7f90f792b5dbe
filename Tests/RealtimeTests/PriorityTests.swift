import CRestrictedProcess
import Glibc
import Realtime
import Synchronization
import Testing

@Suite("Real-time priority of a thread")
struct PriorityTests {
    /// How a thread is scheduled.
    private struct Schedule: Equatable {
        var policy = sched_getscheduler(0)
        var priority: Int32

        init() {
            var parameter = sched_param()
            sched_getparam(0, &parameter)
            priority = parameter.sched_priority
        }
    }

    /// A thread's schedules before, while and after its priority is suspended; nil where the machine refuses the first.
    private func suspend(
        policy: Int32, priority: Int32, _ prepare: @escaping @Sendable () -> Bool = { true }
    ) throws -> (before: Schedule, meanwhile: Schedule, after: Schedule)? {
        let outcome = Mutex<(Schedule, Schedule, Schedule)?>(nil)
        let thread = try RealtimeThread(name: "priority") {
            guard handset_test_schedule(policy, priority) == 0, prepare() else { return }
            let before = Schedule()
            let taken = RealtimeThread.suspendPriority()
            let meanwhile = Schedule()
            RealtimeThread.resumePriority(taken)
            outcome.withLock { $0 = (before, meanwhile, Schedule()) }
        }
        thread.join()
        return outcome.withLock { $0 }
    }

    @Test("A suspended priority comes back as it was, regardless of its policy", arguments: [SCHED_FIFO, SCHED_RR])
    func policies(policy: Int32) throws {
        guard let seen = try suspend(policy: policy, priority: 3) else { return }
        #expect(seen.before.policy == policy && seen.before.priority == 3)
        #expect(seen.meanwhile.policy == SCHED_OTHER)
        #expect(seen.after == seen.before)
    }

    @Test("A priority that was given to a running thread by others comes back, and not the one it had asked for")
    func givenLater() throws {
        let seen = try suspend(policy: SCHED_OTHER, priority: 0) {
            guard (try? RealtimeThread.makeCurrentRealtime(priority: 2)) != nil else { return false }
            return handset_test_schedule(SCHED_FIFO, 5) == 0
        }
        guard let seen else { return }
        #expect(seen.meanwhile.policy == SCHED_OTHER)
        #expect(seen.after == seen.before && seen.after.priority == 5)
    }

    @Test("A priority that the process was started with and may not ask for is not lost")
    func inherited() throws {
        guard let seen = try suspend(policy: SCHED_FIFO, priority: 3, { handset_test_drop_priority_right() == 0 })
        else {
            return
        }
        #expect(seen.after == seen.before && seen.after.policy == SCHED_FIFO)
    }

    @Test("A thread of ordinary priority stays one")
    func ordinary() throws {
        let seen = try #require(try suspend(policy: SCHED_OTHER, priority: 0))
        #expect(seen.meanwhile == seen.before && seen.after == seen.before)
    }
}
