internal import ControlWire
internal import Glibc

/// A control socket whose path need not be configured: it is in the user's folder of run-time files, or the system's.
public struct StandardSocket: Sendable, Equatable {
    /// A device's, for lines of JSON.
    public static let device = StandardSocket("handset/control.sock", of: .device)
    /// An exchange's, over HTTP.
    public static let exchange = StandardSocket("handset/exchange.sock", of: .exchange)
    /// A trunk's, over HTTP.
    public static let trunk = StandardSocket("handset/trunk.sock", of: .trunk)

    private let name: String
    /// The kind of process that listens there.
    let source: WebhookSource

    private init(_ name: String, of source: WebhookSource) { (self.name, self.source) = (name, source) }

    /// The paths, the preferred one first: the user's, and the system's.
    ///
    /// - Parameter environment: What the process's variables hold.
    public func paths(environment: (String) -> String?) -> [String] {
        let system = "/run/\(name)"
        guard let folder = environment("XDG_RUNTIME_DIR"), folder.hasPrefix("/") else { return [system] }
        return ["\(folder)/\(name)", system]
    }

    /// Where a process listens.
    public var listening: String { paths(environment: Self.variable)[0] }

    /// Where a client connects: the first of the paths that exists.
    public var reaching: String {
        let places = paths(environment: Self.variable)
        return places.first { unsafe access($0, F_OK) == 0 } ?? places[0]
    }

    private static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}
