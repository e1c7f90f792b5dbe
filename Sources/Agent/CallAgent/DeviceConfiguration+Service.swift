public import CallControl
internal import FoundationEssentials
public import Logging
public import NIOCore
internal import NIOPosix
internal import SIP
internal import SIPClient
internal import SIPSignaling
public import SignalingClient

extension DeviceConfiguration {
    /// Makes the signaling service that the account is at.
    ///
    /// - Parameters:
    ///   - failsFast: For one call: give up on the first failure to connect, rather than try again, and end the login that was
    ///     made for it.
    ///   - account: Its name among the accounts of this process, under which a SIP account without an `instance_file` is the same
    ///     device to its server each time that it is started; nil makes it another device each time.
    ///   - group: Its event loops; nil for those that all such services share.
    public func makeService(
        program: DeviceProgram, failsFast: Bool = false, account name: String? = nil,
        group: (any EventLoopGroup)? = nil, logger: Logger
    ) throws(SignalingError) -> any SignalingService {
        let group = group ?? MultiThreadedEventLoopGroup.singleton
        if var settings = account.sip {
            settings.trustRootFile = account.trustRoots
            settings.account.agent.callees = account.callees ?? CalleeList()
            settings.account.agent.product = "\(program.name)/\(program.version)"
            settings.account.givesUpAtOnce = failsFast
            // A call of a moment is no device to be known again, and must not take the place of one that runs.
            let file = failsFast ? nil : settings.instanceFile
            let instance =
                if let name, file == nil, !failsFast {
                    SIPInstance(ofAccount: "\(name) \(settings.account.address.uri)")
                } else {
                    SIPInstance(keptIn: file, logger: logger)
                }
            settings.account.instance = instance.name
            return try SIPService(settings, group: group, logger: logger)
        }
        var settings = try HandsetServiceConfiguration(self, program: program)
        if failsFast {
            settings.loginPatience = .zero
            settings.connection.firstAttempts = 1
            settings.endsLogin = true
        }
        return try HandsetService(settings, group: group, logger: logger)
    }
}
