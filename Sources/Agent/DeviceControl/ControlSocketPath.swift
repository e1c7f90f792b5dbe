public import CallAgent
internal import Glibc

/// Where a device's control socket is, unless a path is given.
public enum ControlSocketPath {
    private static let name = "handset/control.sock"

    /// The default paths, the preferred one first: the user's, and the system's.
    ///
    /// - Parameter environment: What the process's variables hold.
    public static func standard(environment: (String) -> String?) -> [String] {
        let system = "/run/\(name)"
        guard let folder = environment("XDG_RUNTIME_DIR"), folder.hasPrefix("/") else { return [system] }
        return ["\(folder)/\(name)", system]
    }

    /// Where a device with this configuration listens.
    public static func listening(_ configuration: ControlConfiguration) -> String {
        switch configuration.socket {
        case .path(let path): path
        case .standard: standard(environment: variable)[0]
        }
    }

    /// The path at which a client connects to a device: that of the configuration, else the first default path that
    /// exists.
    public static func reaching(_ configuration: ControlConfiguration?) -> String {
        if case .path(let path)? = configuration?.socket { return path }
        let places = standard(environment: variable)
        return places.first { unsafe access($0, F_OK) == 0 } ?? places[0]
    }

    private static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}

/// A path as the address of a socket.
struct UnixAddress {
    private var raw = sockaddr_un()

    /// What is wrong with a path that does not fit.
    static let tooLong = "the path is longer than the 107 bytes that sockets have room for"

    /// Nil if the path is empty or does not fit.
    init?(_ path: String) {
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, !bytes.contains(0), bytes.count < MemoryLayout.size(ofValue: raw.sun_path) else {
            return nil
        }
        raw.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &raw.sun_path) { unsafe $0.copyBytes(from: bytes) }
    }

    /// False, and errno set, if that cannot be.
    func bind(_ descriptor: Int32) -> Bool {
        unsafe withPointer { unsafe Glibc.bind(descriptor, $0, $1) } == 0
    }

    /// False, and errno set, if that cannot be.
    func connect(_ descriptor: Int32) -> Bool {
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
