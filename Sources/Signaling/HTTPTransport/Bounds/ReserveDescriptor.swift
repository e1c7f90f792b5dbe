internal import Glibc

/// A descriptor that is held for the moment in which there is no other.
package struct ReserveDescriptor: ~Copyable {
    private var descriptor: Int32 = -1

    /// Whether there is one.
    var isHeld: Bool { descriptor >= 0 }

    /// Takes one, if there is one to be had; it is an end of nothing, and costs no more than its number.
    mutating func take() {
        guard !isHeld else { return }
        descriptor = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
    }

    /// Releases the descriptor, so that other code can use it.
    mutating func give() {
        guard isHeld else { return }
        close(descriptor)
        descriptor = -1
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// How many descriptors this process may have.
    package static var limit: Int {
        var limit = rlimit()
        // The call fills in the one structure that it is given.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
        return Int(clamping: limit.rlim_cur)
    }
}
