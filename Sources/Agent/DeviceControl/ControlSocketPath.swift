// DeviceControl: where programs on this machine act on a running device: the socket, its clients, and their requests.

public import CallAgent
internal import ControlPlane

/// Where a device's control socket is, unless a path is given.
public enum ControlSocketPath {
    /// The default paths, the preferred one first: the user's, and the system's.
    ///
    /// - Parameter environment: What the process's variables hold.
    public static func standard(environment: (String) -> String?) -> [String] {
        StandardSocket.device.paths(environment: environment)
    }

    /// Where a device with this configuration listens.
    public static func listening(_ configuration: ControlConfiguration) -> String {
        switch configuration.socket {
        case .path(let path): path
        case .standard: StandardSocket.device.listening
        }
    }

    /// The path at which a client connects to a device: that of the configuration, else the first default path that
    /// exists.
    public static func reaching(_ configuration: ControlConfiguration?) -> String {
        if case .path(let path)? = configuration?.socket { return path }
        return StandardSocket.device.reaching
    }

    /// The path at which a client reaches a device with this configuration over HTTP.
    public static func reachingHTTP(_ configuration: ControlConfiguration) -> String {
        (configuration.http ?? ControlHTTPConfiguration()).path(beside: reaching(configuration))
    }
}
