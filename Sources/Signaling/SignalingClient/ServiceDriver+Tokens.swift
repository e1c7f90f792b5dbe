internal import CallControl
internal import FoundationEssentials
internal import HTTPTransport
internal import Logging
internal import NIOCore
internal import SignalWire
internal import Timekeeping

// The access token: got by a login or kept from an earlier one, renewed before it ends (contract AUTH-4, AUTH-10).
extension ServiceDriver {
    /// What becomes of somebody who needs a token.
    typealias TokenOutcome = Result<RESTClient.Login, ServiceFailure>

    /// A token that the exchange refused on a connection that stood, and when.
    struct Rejection {
        /// Which of the tokens that this device has had, for a renewal may give the same again.
        let generation: Int
        let at: Instant
    }

    // MARK: Logging in

    func sendLogin(_ number: Int) {
        if let kept = keptLogin() {
            take(kept, isKept: true)
            return feed(login: .succeeded)
        }
        let rest = rest
        let finish = finisher { (driver, result: TokenOutcome) in
            guard driver.loginNumber == number else { return }
            switch result {
            case .success(let login):
                driver.take(login)
                driver.feed(login: .succeeded)
            case .failure(let failure):
                driver.feed(login: .failed(failure))
            }
        }
        Task {
            do throws(ServiceFailure) {
                finish(.success(try await rest.login()))
            } catch {
                finish(.failure(error))
            }
        }
    }

    /// The login of an earlier run, if it is of this application and this user.
    private func keptLogin() -> RESTClient.Login? {
        guard let store = configuration.sessionStore else { return nil }
        do throws(SignalingError) {
            guard let kept = try store.load() else {
                if try store.look() == .foreign { try store.clear() }  // Of another application (AUTH-8).
                return nil
            }
            if let user = configuration.credentials.user, let keptUser = kept.user, user != keptUser {
                try store.clear()
                return nil
            }
            let lifetime = kept.expiresAt.map { Duration.milliseconds($0 - WallClock.now.unixMilliseconds) }
            return RESTClient.Login(
                token: kept.token, refreshToken: kept.refreshToken, lifetime: lifetime, user: kept.user,
                publicIDs: kept.publicIDs)
        } catch {
            logger.warning("the login kept from earlier cannot be used", metadata: ["because": "\(error)"])
            return nil
        }
    }

    /// There is a token: it is kept, its end is watched, and those who wait for it go on.
    private func take(_ login: RESTClient.Login, isKept: Bool = false) {
        held = login
        tokenGeneration += 1
        tokenWasGood = isKept
        if !isKept { keep(login) }
        feed(tokens: .granted(lifetime: login.lifetime))
        renewSession(with: login)
        settleTokenWaiters(.success(login))
    }

    /// The session that stands goes on with the new token; if the exchange does not take it, it ends with the old one.
    private func renewSession(with login: RESTClient.Login) {
        guard connection.state == .connected else { return }
        send(SessionRenew(token: login.token), doing: "go on with the new access token") { [self] result in
            switch result {
            case .success: tokenWasGood = true
            case .failure(let error):
                logger.warning("the session keeps its old access token", metadata: ["because": "\(error)"])
            }
        }
    }

    private func keep(_ login: RESTClient.Login) {
        guard let store = configuration.sessionStore else { return }
        let end = login.lifetime.map {
            WallClock.now.unixMilliseconds + $0.components.seconds * 1_000
        }
        let kept = SessionStore.Kept(
            application: store.application, server: store.server, device: configuration.device.id.rawValue,
            user: login.user, token: login.token, refreshToken: login.refreshToken, expiresAt: end,
            publicIDs: login.publicIDs)
        do throws(SignalingError) {
            try store.save(kept)
        } catch {
            logger.warning(
                "the login cannot be kept; after a restart it has to be made anew", metadata: ["because": "\(error)"])
        }
    }

    /// Forgets the token, here and on disk (AUTH-9); one that is only on disk counts as well.
    func forgetLogin() -> (login: RESTClient.Login?, error: SignalingError?) {
        held = held ?? keptLogin()
        defer {
            held = nil
            feed(tokens: .forget)
            feed(login: .logout)
        }
        do throws(SignalingError) {
            try configuration.sessionStore?.clear()
            return (held, nil)
        } catch {
            return (held, error)
        }
    }

    // MARK: Renewing

    func feed(tokens input: TokenMachine.Input) {
        var outbox: [TokenMachine.Output] = []
        tokens.handle(input, at: now, into: &outbox)
        for output in outbox {
            switch output {
            case .renew: renew()
            case .retrying(let delay, let error):
                logger.warning(
                    "the access token cannot be renewed yet", metadata: ["in": "\(delay.text)", "because": "\(error)"])
            case .expired(let error): loseToken(error)
            }
        }
        scheduleWakeUp()
    }

    /// Says that the exchange refuses `token`, and calls back when there is another one, or none to be had.
    ///
    /// However many ask, one renewal is made.
    func replace(_ token: Redacted<String>, _ complete: @escaping (TokenOutcome) -> Void) {
        guard let held else { return complete(.failure(Self.noToken)) }
        guard held.token == token else { return complete(.success(held)) }  // Somebody else was quicker.
        tokenWaiters.append(complete)
        feed(tokens: .refused)
        if tokens.isExpired { settleTokenWaiters(.failure(lastTokenFailure ?? Self.noToken)) }
    }

    private func renew() {
        guard let held else { return }
        let rest = rest
        let isRefused = !tokenWaiters.isEmpty
        let finish = finisher { (driver, result: TokenOutcome) in
            guard driver.held?.token == held.token else { return }  // Logged out, or in anew, meanwhile.
            switch result {
            case .success(let login):
                driver.logger.debug("the access token is renewed")
                driver.take(login)
            case .failure(let failure):
                driver.lastTokenFailure = failure
                driver.feed(tokens: .renewalFailed(failure))
                driver.settleTokenWaiters(.failure(failure))
            }
        }
        Task {
            do throws(ServiceFailure) {
                finish(.success(try await rest.renew(held, isRefused: isRefused)))
            } catch {
                finish(.failure(error))
            }
        }
    }

    /// The token has ended for good: `tokenExpired`, then `disconnected`; the next `connect` logs in anew.
    private func loseToken(_ error: SignalingError) {
        let failure = ServiceFailure(error, remedy: .none)
        lastTokenFailure = failure
        settleTokenWaiters(.failure(failure))
        held = nil
        link?.close(1000)
        dropLinks()
        feed(connection: .giveUp(failure.error))
        feed(login: .logout)
    }

    private func settleTokenWaiters(_ outcome: TokenOutcome) {
        let settled = tokenWaiters
        tokenWaiters = []
        for waiter in settled { waiter(outcome) }
    }

    /// Whether a connection that was closed for its token is worth another one with a new token.
    ///
    /// Not when the token is fresh from a login or a renewal and never was good: that would go on for ever (AUTH-11).
    func isWorthNewToken() -> Bool {
        guard held != nil, canRenew, tokenWasGood else { return false }
        defer { rejection = Rejection(generation: tokenGeneration, at: now) }
        guard let rejection, rejection.generation != tokenGeneration else { return true }
        return rejection.at.duration(to: now) > configuration.connection.stableAfter
    }

    /// Whether there can be another token than the one there is.
    var canRenew: Bool {
        if case .sessionToken(_, .fixed) = configuration.credentials { false } else { true }
    }

    static var noToken: ServiceFailure {
        ServiceFailure(
            SignalingError(
                .notAuthenticated, activity: "connect", cause: "this device is not logged in", advice: "Log in first."),
            remedy: .none)
    }
}

extension SignalingError {
    /// Whether the token was refused, so that another one may help.
    var isAboutToken: Bool { code == .tokenExpired || code == .tokenRejected }
}
