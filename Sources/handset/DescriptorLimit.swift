internal import Glibc

/// How many connections a process may have.
enum DescriptorLimit {
    /// Raises the limit on open files as far as the system lets this process: systems start programs with a low one for
    /// the sake of those that use `select`, and none here does.
    ///
    /// - Returns: The limit now.
    @discardableResult
    static func raise() -> UInt {
        var limit = rlimit()
        // Both calls fill in or read the one structure that they are given.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        let before = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return UInt(before) }
        return UInt(limit.rlim_cur)
    }
}
