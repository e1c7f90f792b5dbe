internal import CallAgent
internal import CallControl
internal import ConfigReader
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Core
internal import Realtime

/// Makes a device out of a configuration: its service, its sockets and its one event loop.
struct DeviceFactory {
    let configuration: DeviceConfiguration
    /// For one call: give up on the first failure to connect, rather than try again, and end the login that was made for it.
    var failsFast = false
    let logger: Logger

    /// A device that is not connected, and the event loop that carries it.
    func make() throws -> (device: Device, group: MultiThreadedEventLoopGroup) {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let service = try configuration.makeService(
            program: DeviceProgram(version: HandsetVersion.current), failsFast: failsFast, group: group, logger: logger)
        let device = try Device(
            configuration, service: service, mediaAddress: MediaAddress(for: configuration), logger: logger)
        return (device, group)
    }
}
