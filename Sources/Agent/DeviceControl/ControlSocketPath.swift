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
