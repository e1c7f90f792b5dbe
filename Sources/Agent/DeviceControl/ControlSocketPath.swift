public import CallAgent
internal import Glibc

/// Where a device's control socket is, unless a path is given.
public enum ControlSocketPath {
    private static let name = "handset/control.sock"

    /// The places to look at, the best first: the user's own, and the system's.
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

    /// Where a client looks for a device: with a configuration where that has it, else at the first of the standard
    /// places that there is.
    public static func reaching(_ configuration: ControlConfiguration?) -> String {
        if case .path(let path)? = configuration?.socket { return path }
        let places = standard(environment: variable)
        return places.first { unsafe access($0, F_OK) == 0 } ?? places[0]
    }

    private static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}
