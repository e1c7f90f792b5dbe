/// Where a report comes from.
public struct RunOrigin: Equatable, Sendable {
    /// Handset's version.
    public var version: String
    /// The host's name.
    public var host: String
    /// Its kernel and processor, such as "Linux 6.1.0 x86_64".
    public var system: String

    /// Says where a report comes from.
    public init(version: String, host: String, system: String) {
        self.version = version
        self.host = host
        self.system = system
    }

    /// For a person, in a line.
    public var text: String { "Handset \(version) on \(host) (\(system))" }
}
