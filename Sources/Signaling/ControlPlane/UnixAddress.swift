internal import Glibc

/// A path as the address of a socket.
package struct UnixAddress {
    private var raw = sockaddr_un()

    /// What is wrong with a path that does not fit.
    package static let tooLong = "the path is longer than the 107 bytes that sockets have room for"

    /// Nil if the path is empty or does not fit.
    package init?(_ path: String) {
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, !bytes.contains(0), bytes.count < MemoryLayout.size(ofValue: raw.sun_path) else {
            return nil
        }
        raw.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &raw.sun_path) { unsafe $0.copyBytes(from: bytes) }
    }

    /// False, and errno set, if that cannot be.
    package func bind(_ descriptor: Int32) -> Bool {
        unsafe withPointer { unsafe Glibc.bind(descriptor, $0, $1) } == 0
    }

    /// False, and errno set, if that cannot be.
    package func connect(_ descriptor: Int32) -> Bool {
        unsafe withPointer { unsafe Glibc.connect(descriptor, $0, $1) } == 0
    }

    private func withPointer(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        unsafe withUnsafePointer(to: raw) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
