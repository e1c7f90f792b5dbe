/// How much memory this process may have.
public enum MachineMemory {
    /// Bytes of memory that the machine has, or that its control group leaves it (`MemoryMax=` in systemd, the limit of
    /// a container), whichever is less; `nil` if the system does not report it.
    public static var limitBytes: Int? { limit { KernelFile.text(of: $0) } }

    /// - Parameter file: The contents of a file; `nil` if there is none.
    static func limit(reading file: (String) -> String?) -> Int? {
        var limits: [Int] = []
        if let machine = file("/proc/meminfo").flatMap(machineBytes) { limits.append(machine) }
        for group in file("/proc/self/cgroup").map(controlGroups) ?? [] {
            // A group has no more than its parent groups.
            var path = group.path
            while true {
                let name = "\(group.mount)\(path)/\(group.file)"
                if let text = file(name), let bytes = Int(text.filter { !$0.isWhitespace }) { limits.append(bytes) }
                guard let slash = path.lastIndex(of: "/") else { break }
                path = String(path[..<slash])
            }
        }
        return limits.min()
    }

    /// `MemTotal:  16384 kB`
    private static func machineBytes(_ text: String) -> Int? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("MemTotal:") }
        guard let words = line?.split(separator: " "), words.count == 3, let kilobytes = Int(words[1]) else {
            return nil
        }
        return kilobytes << 10
    }

    /// Lines such as `0::/system.slice/handset.service` (version 2), or `9:memory:/handset` (version 1).
    private static func controlGroups(_ text: String) -> [(mount: String, path: String, file: String)] {
        text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { return nil }
            let path = parts[2] == "/" ? "" : String(parts[2])
            if parts[0] == "0", parts[1].isEmpty { return ("/sys/fs/cgroup", path, "memory.max") }
            guard parts[1].split(separator: ",").contains("memory") else { return nil }
            return ("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
        }
    }
}
