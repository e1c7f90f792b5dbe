import Testing

@testable import Realtime

@Suite struct MachineMemoryTests {
    private static let machine = "MemTotal:       24576000 kB\nMemFree:         1000000 kB\n"

    private func limit(_ files: [String: String]) -> Int? { MachineMemory.limit { files[$0] } }

    @Test(
        "Without a control group's limit it is the machine's memory, and unknown on a machine that does not report it"
    )
    func machine() {
        #expect(limit(["/proc/meminfo": Self.machine]) == 24_576_000 << 10)
        #expect(limit([:]) == nil)
        #expect(limit(["/proc/meminfo": "MemTotal: much\n", "/proc/self/cgroup": "nonsense\n::\n"]) == nil)
    }

    @Test("A control group's limit counts, and that of each group above it, in version 2")
    func version2() {
        var files = [
            "/proc/meminfo": Self.machine, "/proc/self/cgroup": "0::/system.slice/handset.service\n",
            "/sys/fs/cgroup/system.slice/handset.service/memory.max": "max\n",
        ]
        #expect(limit(files) == 24_576_000 << 10)
        files["/sys/fs/cgroup/system.slice/handset.service/memory.max"] = "268435456\n"
        #expect(limit(files) == 256 << 20)
        files["/sys/fs/cgroup/system.slice/memory.max"] = "134217728\n"
        #expect(limit(files) == 128 << 20)
        files["/proc/self/cgroup"] = "0::/\n"
        files["/sys/fs/cgroup/memory.max"] = "67108864\n"
        #expect(limit(files) == 64 << 20, "a container's own")
    }

    @Test("The memory controller's group counts in version 1, whose limit is a huge number where there is none")
    func version1() {
        var files = [
            "/proc/meminfo": Self.machine, "/proc/self/cgroup": "12:cpu,cpuacct:/other\n4:memory:/board\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "/sys/fs/cgroup/memory/other/memory.limit_in_bytes": "1\n",
        ]
        #expect(limit(files) == 24_576_000 << 10)
        files["/sys/fs/cgroup/memory/board/memory.limit_in_bytes"] = "268435456\n"
        #expect(limit(files) == 256 << 20)
    }

    @Test("This machine reports how much memory there is")
    func here() throws { #expect(try #require(MachineMemory.limitBytes) > 16 << 20) }
}
