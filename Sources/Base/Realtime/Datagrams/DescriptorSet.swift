internal import CRealtime

/// Descriptors that one thread waits for together, each under a token that its owner chooses.
public struct DescriptorSet: ~Copyable {
    /// Readable when something can be done with a member.
    public let descriptor: Int32

    /// A member that something can be done with.
    public struct Ready: Sendable {
        /// Its token.
        public let token: UInt64
        /// A read returns bytes, the end, or an error.
        public let isReadable: Bool
        /// Writing makes progress, or fails.
        public let isWritable: Bool
    }

    /// Makes an empty set.
    public init() throws(RealtimeError) {
        descriptor = handset_set_open()
        if descriptor < 0 { throw RealtimeError(doing: "opening a set of descriptors (epoll)", errno: -descriptor) }
    }

    deinit { handset_close(descriptor) }

    /// Takes a descriptor in. It leaves by itself when it is closed.
    public func insert(_ member: Int32, token: UInt64, forWriting: Bool) throws(RealtimeError) {
        let result = handset_set_watch(descriptor, member, token, forWriting, true)
        if result < 0 { throw RealtimeError(doing: "watching a socket (epoll)", errno: -result) }
    }

    /// Changes whether a member is watched for writing as well as for reading.
    public func update(_ member: Int32, token: UInt64, forWriting: Bool) {
        _ = handset_set_watch(descriptor, member, token, forWriting, false)
    }

    /// Members that something can be done with now; at most 64 at once. Does not wait.
    public func ready() -> [Ready] {
        unsafe withUnsafeTemporaryAllocation(of: handset_ready.self, capacity: 64) { buffer in
            let count = unsafe handset_set_ready(descriptor, buffer.baseAddress, 64)
            return (0..<max(0, Int(count))).map { index in
                let entry = unsafe buffer[index]
                return Ready(token: entry.token, isReadable: entry.readable, isWritable: entry.writable)
            }
        }
    }
}
