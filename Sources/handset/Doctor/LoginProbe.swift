internal import CallAgent
internal import CallControl
internal import DeviceDiagnosis
internal import Logging
internal import SIP
internal import SIPClient
internal import SIPSignaling
internal import SignalingClient

/// Logs in at an exchange as the device would, as a device of its own, and ends that login. At a SIP server it asks for the registrations of
/// the account, which needs the same login and changes none.
struct LoginProbe: Sendable {
    let configuration: DeviceConfiguration

    /// Why a login is not tried, although the server can be reached; nil if nothing is against it.
    ///
    /// - Parameter isRunning: Whether a device of the configuration runs.
    static func objection(to configuration: DeviceConfiguration, isRunning: Bool) -> String? {
        if let sip = configuration.account.sip {
            return sip.account.registrationSeconds == 0
                ? "not tried: the account does not register (register_s: 0)" : nil
        }
        switch configuration.account.credential {
        case .kept:
            return
                "not tried: the account has nothing but the login that session_file keeps, and the end of this trial would "
                + "end that"
        case .key: return isRunning ? "not tried: the key is in use by the device that runs" : nil
        case .mediaToken, .password, .accessToken, .sessionToken, .anonymous: return nil
        }
    }

    /// - Returns: What came of it, and the STUN and TURN servers that the exchange names.
    func run() async -> (login: LoginFacts, servers: [CallControl.ICEServer]) {
        var trial = configuration
        trial.account.sessionFile = nil
        trial.device.id = nil
        trial.device.name = "handset doctor"
        do throws(SignalingError) {
            let service = try trial.makeService(
                program: DeviceProgram(version: HandsetVersion.current), failsFast: true, registers: false,
                logger: .silent)
            do throws(SignalingError) {
                try await service.connect()
            } catch {
                await service.disconnect()
                throw error
            }
            let user = await service.session?.user.text ?? "a guest"
            let servers = await service.iceServers
            await service.disconnect()
            if let sip = configuration.account.sip { return (.confirmed(address: "\(sip.account.address.uri)"), []) }
            return (.granted(user: user), servers)
        } catch {
            return (Self.facts(error), [])
        }
    }

    private static func facts(_ error: SignalingError) -> LoginFacts {
        let cause = error.cause + (error.traceID.map { " (Trace-Id \($0))" } ?? "")
        if error.code == .unknownUser { return .unknownUser(cause: cause) }
        if error.code == .certificateNotTrusted { return .untrusted(cause: cause) }
        if error.code == .tokenExpired { return .expired(cause: cause) }
        if ExitStatus(error) == .loginRefused { return .refused(cause: cause, advice: error.advice) }
        return .failed(cause: cause, advice: error.advice)
    }
}

extension Logger {
    /// Logs nothing: what a diagnosis prints is its result.
    static var silent: Logger { Logger(label: "handset") { _ in SwiftLogNoOpLogHandler() } }
}
