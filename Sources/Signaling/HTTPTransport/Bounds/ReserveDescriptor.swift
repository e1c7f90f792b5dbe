internal import Files
internal import Glibc

/// A descriptor that is held for the moment in which there is no other.
package struct ReserveDescriptor: ~Copyable {
    private var file: OpenFile?

    /// Whether there is one.
    var isHeld: Bool { file != nil }

    /// Takes one, if there is one to be had; it is an end of nothing, and costs no more than its number.
    mutating func take() {
        if !isHeld { file = try? OpenFile("/dev/null", O_RDONLY) }
    }

    /// Releases the descriptor, so that other code can use it.
    mutating func give() { file = nil }

    /// How many descriptors this process may have.
    package static var limit: Int {
        var limit = rlimit()
        // The call fills in the one structure that it is given.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
        return Int(clamping: limit.rlim_cur)
    }
}
