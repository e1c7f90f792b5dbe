import ConfigReader

/// Reading who may come to an exchange, and how many.
extension ExchangeConfiguration {
    mutating func readBounds(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        connections = section.integer("connections", in: 1...10_000_000, &problems)
        connectionsPerAddress = section.integer("connections_per_address", in: 1...10_000_000, &problems)
        let memory = section.integer("login_memory_mib", in: 1...65_536, &problems)
        loginMemoryBytes = memory.map { $0 << 20 } ?? loginMemoryBytes
        let kept = section.integer("kept_memory_mib", in: 8...65_536, &problems)
        keptMemoryBytes = kept.map { $0 << 20 } ?? keptMemoryBytes
        allowedHosts = (section.list("allowed_hosts", &problems) ?? []).filter { text in
            if HostPattern(text) != nil { return true }
            problems.append(
                section.problem(
                    "allowed_hosts",
                    "\"\(text)\" must be a host name or an address without a port, such as calls.example.org, "
                        + "*.example.org or 192.0.2.1"))
            return false
        }
    }
}
