/// The program that a device is part of, as sent to the service.
public struct DeviceProgram: Sendable {
    /// Its name.
    public var name: String
    /// Its version.
    public var version: String

    /// Makes a program's name.
    public init(name: String = "Handset", version: String) {
        self.name = name
        self.version = version
    }
}
