import CRestrictedProcess
import Realtime
import Testing

@Suite("Memory of the process", .serialized)
struct ProcessMemoryTests {
    @Test("Memory is not locked where later allocations would fail: CAP_IPC_LOCK of a user namespace is no right")
    func userNamespace() throws {
        let outcome = handset_test_lock_in_user_namespace()
        // Machines without user namespaces have nothing to show here.
        guard outcome != HANDSET_TEST_LOCK_UNKNOWN else { return }
        #expect(outcome == HANDSET_TEST_LOCK_REFUSED)
    }

    @Test("With dumps forbidden the process reads what it needs of /proc/self, and its programs may be dumped as ever")
    func forbiddenDumps() throws {
        let before = ProcessMemory.mayBeDumped
        defer { handset_test_set_dumpable(before ? 1 : 0) }
        ProcessMemory.forbidDumps()
        #expect(!ProcessMemory.mayBeDumped)
        let releases = ProcessMemory.releases
        ProcessMemory.releaseStartUpCode()
        #expect(ProcessMemory.releases == releases + 1 && ProcessMemory.residentBytes > 0)
        #expect(MachineMemory.limitBytes ?? 0 > 0)
    }

    @Test("Code that stays because memory is locked does not count as let go of, and does once it is unlocked")
    func lockedCode() throws {
        // Machines that refuse to lock memory have nothing to show here.
        guard (try? ProcessMemory.lock()) != nil else { return }
        let before = ProcessMemory.releases
        ProcessMemory.releaseStartUpCode()
        let whenLocked = ProcessMemory.releases
        ProcessMemory.unlock()
        ProcessMemory.releaseStartUpCode()
        #expect(whenLocked == before)
        #expect(ProcessMemory.releases == before + 1)
    }
}
