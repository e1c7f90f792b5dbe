internal import CallControl
internal import Logging
internal import SignalWire
internal import Core
internal import Realtime

/// The login on disk, if the configuration has a place for it (contract AUTH-10).
struct LoginFile {
    private let store: SessionStore?
    private let device: DeviceID
    /// Whose login it must be; nil if any user's will do.
    private let user: String?
    private let logger: Logger

    init(_ configuration: HandsetServiceConfiguration, logger: Logger) {
        store = configuration.sessionStore
        device = configuration.device.id
        user = configuration.credentials.user
        self.logger = logger
    }

    /// Whether logins are kept.
    var isKept: Bool { store != nil }

    /// The login of an earlier run, if it is of this application and this user.
    func load() -> RESTClient.Login? {
        guard let store else { return nil }
        do throws(SignalingError) {
            guard let kept = try store.load() else {
                if try store.look() == .foreign { try store.clear() }  // Of another application (AUTH-8).
                return nil
            }
            if let user, let keptUser = kept.user, user != keptUser {
                try store.clear()
                return nil
            }
            let lifetime = kept.expiresAt.map { end in
                // The file may say anything.
                let (left, overflow) = end.subtractingReportingOverflow(MonotonicClock.wallTime.unixMilliseconds)
                return Duration.milliseconds(overflow ? 0 : left)
            }
            return RESTClient.Login(
                token: kept.token, refreshToken: kept.refreshToken, lifetime: lifetime, user: kept.user,
                publicIDs: kept.publicIDs)
        } catch {
            logger.warning("The login kept from earlier cannot be used", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Keeps a login for the next run.
    func save(_ login: RESTClient.Login) {
        guard let store else { return }
        let end = login.lifetime.map {
            MonotonicClock.wallTime.unixMilliseconds + $0.components.seconds * 1_000
        }
        let kept = SessionStore.Kept(
            application: store.application, server: store.server, device: device,
            user: login.user, token: login.token, refreshToken: login.refreshToken, expiresAt: end,
            publicIDs: login.publicIDs)
        do throws(SignalingError) {
            try store.save(kept)
        } catch {
            logger.warning(
                "The login cannot be kept; after a restart the device has to log in again",
                metadata: ["error": "\(error)"])
        }
    }

    /// Removes the login.
    func clear() throws(SignalingError) { try store?.clear() }
}
