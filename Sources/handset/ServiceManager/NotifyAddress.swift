internal import Glibc

/// Where a service manager listens: a path, or a name in the abstract namespace of unix(7), which begins with `@`.
struct NotifyAddress {
    private var raw = sockaddr_un()
    private let length: socklen_t

    /// Nil if it is neither, or does not fit.
    init?(_ text: String) {
        var bytes = Array(text.utf8)
        guard bytes.count > 1, bytes.count < MemoryLayout.size(ofValue: raw.sun_path), !bytes.contains(0) else {
            return nil
        }
        switch bytes[0] {
        case UInt8(ascii: "/"): bytes.append(0)
        case UInt8(ascii: "@"): bytes[0] = 0
        default: return nil
        }
        raw.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &raw.sun_path) { unsafe $0.copyBytes(from: bytes) }
        length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
    }

    /// Sends one datagram there, without waiting. False, and errno set, if that cannot be.
    func send(_ bytes: [UInt8], through descriptor: Int32) -> Bool {
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let count = unsafe withUnsafePointer(to: raw) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe sendto(descriptor, bytes, bytes.count, flags, $0, length)
            }
        }
        return count == bytes.count
    }
}
