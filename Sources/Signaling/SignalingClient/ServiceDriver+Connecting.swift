internal import CallControl
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import SignalWire

// Login, resources, socket and session: what the machines ask for on the way to a connection.
extension ServiceDriver {
    /// Fetches the resources; a token that is refused (the exchange may have been restarted) is replaced once.
    func fetchResources(_ attempt: Int) {
        guard let held else {
            return feed(connection: .link(.resourcesFailed(lastTokenFailure ?? Self.noToken), attempt: attempt))
        }
        if let rejection, rejection.generation == tokenGeneration {
            return replaceToken(held.token, andFetch: attempt)  // Refused already, on a connection that stood.
        }
        fetchResources(attempt, with: held.token, isSecondTry: false)
    }

    private func replaceToken(_ token: Redacted<String>, andFetch attempt: Int) {
        replace(token) { [self] outcome in
            switch outcome {
            case .success(let login): fetchResources(attempt, with: login.token, isSecondTry: true)
            case .failure(let failure): feed(connection: .link(.resourcesFailed(failure), attempt: attempt))
            }
        }
    }

    private func fetchResources(_ attempt: Int, with token: Redacted<String>, isSecondTry: Bool) {
        let rest = rest
        let finish = finisher { (driver, result: Result<SignalWire.ConnectionResources, ServiceFailure>) in
            switch result {
            case .success(let fetched):
                let resources = CallControl.ConnectionResources(fetched)
                driver.take(serversOf: resources)
                driver.feed(connection: .link(.resourcesFetched(resources), attempt: attempt))
            case .failure(let failure) where failure.error.isAboutToken && !isSecondTry && driver.canRenew:
                driver.replaceToken(token, andFetch: attempt)
            case .failure(let failure):
                driver.feed(connection: .link(.resourcesFailed(failure), attempt: attempt))
            }
        }
        Task {
            do throws(ServiceFailure) {
                finish(.success(try await rest.resources(token: token)))
            } catch {
                finish(.failure(error))
            }
        }
    }

    /// Brings the outcome of work done elsewhere back to the loop.
    func finisher<Outcome: Sendable>(
        _ work: @escaping @Sendable (ServiceDriver, Outcome) -> Void
    ) -> @Sendable (Outcome) -> Void {
        let loop = loop
        let driver = NIOLoopBound(self, eventLoop: loop)
        return { outcome in loop.execute { work(driver.value, outcome) } }
    }

    func openSocket(_ resources: CallControl.ConnectionResources, _ attempt: Int) {
        let activity = "open the WebSocket \(resources.webSocketURL)"
        let endpoint: HTTPEndpoint
        do throws(SignalingError) {
            endpoint = try HTTPEndpoint.of(resources.webSocketURL)
            try endpoint.check(configuration.plainText, for: activity)
        } catch {
            feed(connection: .link(.socketFailed(ServiceFailure(error, remedy: .none)), attempt: attempt))
            return
        }
        let link = WebSocket(Self.linkSettings) { [weak self] event in
            self?.handle(event, attempt, endpoint: endpoint, doing: activity)
        }
        hold(link, attempt)
        let destination = WebSocket.Destination(
            endpoint, headers: ["User-Agent": configuration.application.userAgent], trust: trust, openingTime: nil)
        let opened = WebSocket.connect(link, to: destination, on: loop)
        opened.assumeIsolated().whenComplete { result in
            switch result {
            case .success where self.link === link:
                self.feed(connection: .link(.socketOpened, attempt: attempt))
            case .success where self.nextLink?.link === link:
                self.openAttempt = attempt
                self.changeLinksIfQuiet()
            case .success:
                link.abandon()  // Given up in the meantime.
            case .failure(let error):
                let failure = ServiceFailure.transport(error, to: endpoint, doing: activity)
                self.feed(connection: .link(.socketFailed(failure), attempt: attempt))
            }
        }
    }

    /// A message is read to its end up to this length. One that is longer than ``SignalBounds/delivery`` allows is passed over
    /// then, and the next ones are heard: only past this is the connection given up. The connection's machine has deadlines of
    /// its own.
    private static let linkSettings = WebSocket.Settings(
        .client, messageBytes: 16 * SignalLimits.deliveredBytes, closingTime: nil)

    func startSession(_ resume: ResumePoint?, _ attempt: Int) {
        guard let held else {
            return feed(connection: .link(.sessionRefused(Self.noToken), attempt: attempt))
        }
        let start: SessionStart
        do throws(SignalingError) {
            start = SessionStart(
                token: held.token, device: try DeviceDescription(configuration.device),
                resume: resume.flatMap { .init($0) },
                user: try .of(held.user, "the user's id", doing: "start a session"),
                application: try .of(configuration.application.key, "the app key", doing: "start a session"))
        } catch {
            return refuseSession(error, attempt)
        }
        send(start, on: link(of: attempt), doing: "start a session") { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let result):
                let grant = SessionGrant(result)
                // Numbers begin anew with a session that does, and what comes from now on is of that.
                if !grant.isResumed { self.newestTold = grant.sequence }
                self.register(grant, attempt)
            case .failure(let error) where error.isAboutToken && self.isWorthNewToken():
                let failure = ServiceFailure(error, remedy: .retry(after: nil))
                self.feed(connection: .link(.sessionRefused(failure), attempt: attempt))
            case .failure(let error): self.refuseSession(error, attempt)
            }
        }
    }

    /// Registers the device; only then does the connection count as standing (contract DEV-1).
    private func register(_ grant: SessionGrant, _ attempt: Int) {
        let stand = { [weak self] in
            guard let self else { return }
            self.session = grant
            self.hasConnected = true
            self.tokenWasGood = true
            self.feed(connection: .link(.sessionStarted(grant), attempt: attempt))
        }
        guard !grant.isAnonymous else { return stand() }
        // A program that was there all the time has missed nothing but what the connection's loss cost it.
        let start: DeviceRegister.Start = hasConnected || configuration.start == .warm ? .warm : .cold
        let register: DeviceRegister
        do throws(SignalingError) {
            register = DeviceRegister(
                device: try DeviceDescription(configuration.device), start: start,
                push: try configuration.device.push?.map { target throws(SignalingError) in
                    let kind = try PushKind(target.kind, of: "a push token's kind", doing: "register the device")
                    return DeviceRegister.PushTarget(kind: kind, token: Redacted(target.token))
                })
        } catch {
            return refuseSession(error, attempt)
        }
        send(register, on: link(of: attempt), doing: "register the device") { [weak self] result in
            switch result {
            case .success: stand()
            case .failure(let error): self?.refuseSession(error, attempt)
            }
        }
    }

    private func refuseSession(_ error: SignalingError, _ attempt: Int) {
        feed(connection: .link(.sessionRefused(.session(error)), attempt: attempt))
    }
}
