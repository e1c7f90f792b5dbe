internal import CallControl
internal import NIOCore
internal import SignalWire

// Login, resources, socket and session: what the machines ask for on the way to a connection.
extension ServiceDriver {
    func sendLogin(_ number: Int) {
        let rest = rest
        let finish = finisher { (driver, result: Result<RESTClient.Login, ServiceFailure>) in
            guard driver.loginNumber == number else { return }
            switch result {
            case .success(let login):
                driver.token = login.token
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

    /// Fetches the resources; a token that an exchange no longer knows (it may have been restarted) is replaced once.
    func fetchResources(_ attempt: Int) {
        typealias Fetched = (token: Redacted<String>, resources: SignalWire.ConnectionResources)
        let rest = rest
        let token = token
        let finish = finisher { (driver, result: Result<Fetched, ServiceFailure>) in
            switch result {
            case .success(let fetched):
                driver.token = fetched.token
                let resources = CallControl.ConnectionResources(fetched.resources)
                driver.iceServers = resources.iceServers
                driver.feed(connection: .link(.resourcesFetched(resources), attempt: attempt))
            case .failure(let failure):
                driver.feed(connection: .link(.resourcesFailed(failure), attempt: attempt))
            }
        }
        Task {
            do throws(ServiceFailure) {
                if let token {
                    do throws(ServiceFailure) {
                        return finish(.success((token, try await rest.resources(token: token))))
                    } catch {
                        guard error.error.code == .tokenExpired || error.error.code == .tokenRejected else {
                            throw error
                        }
                    }
                }
                let login = try await rest.login()
                finish(.success((login.token, try await rest.resources(token: login.token))))
            } catch {
                finish(.failure(error))
            }
        }
    }

    /// Brings the outcome of work done elsewhere back to the loop.
    private func finisher<Outcome: Sendable>(
        _ work: @escaping @Sendable (ServiceDriver, Outcome) -> Void
    ) -> @Sendable (Outcome) -> Void {
        let loop = loop
        let driver = NIOLoopBound(self, eventLoop: loop)
        return { outcome in loop.execute { work(driver.value, outcome) } }
    }

    func openSocket(_ resources: CallControl.ConnectionResources, _ attempt: Int) {
        let activity = "open the WebSocket \(resources.webSocketURL)"
        let endpoint: Endpoint
        do throws(SignalingError) {
            endpoint = try Endpoint(resources.webSocketURL)
            try endpoint.check(configuration.plainText, for: activity)
        } catch {
            feed(connection: .link(.socketFailed(ServiceFailure(error, remedy: .none)), attempt: attempt))
            return
        }
        let link = WebSocketLink { [weak self] signal in
            self?.handle(signal, attempt, endpoint: endpoint, doing: activity)
        }
        dropLink()
        self.link = link
        let opened = WebSocketLink.open(
            link, to: endpoint, userAgent: configuration.application.userAgent, trust: trust, on: loop)
        opened.assumeIsolated().whenComplete { result in
            switch result {
            case .success where self.link === link:
                self.feed(connection: .link(.socketOpened, attempt: attempt))
            case .success:
                link.abandon()  // Given up in the meantime.
            case .failure(let error):
                let failure = Self.refusal(error, by: endpoint, doing: activity)
                self.feed(connection: .link(.socketFailed(failure), attempt: attempt))
            }
        }
    }

    private static func refusal(
        _ error: any Error, by endpoint: Endpoint, doing activity: String
    ) -> ServiceFailure {
        guard let refused = error as? WebSocketLink.NotUpgraded else {
            return .transport(error, to: endpoint, doing: activity)
        }
        return .rest(status: refused.status ?? 0, body: nil, retryAfter: nil, traceID: nil, doing: activity)
    }

    func startSession(_ resume: ResumePoint?, _ attempt: Int) {
        guard let token else {
            let error = SignalingError(.notAuthenticated, activity: "start a session", cause: "there is no token")
            return feed(connection: .link(.sessionRefused(ServiceFailure(error, remedy: .none)), attempt: attempt))
        }
        let start = SessionStart(
            token: token, device: DeviceDescription(configuration.device), resume: resume.map { .init($0) })
        send(start, doing: "start a session") { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let result): self.register(SessionGrant(result), attempt)
            case .failure(let error): self.refuseSession(error, attempt)
            }
        }
    }

    /// Registers the device; only then does the connection count as standing (contract DEV-1).
    private func register(_ grant: SessionGrant, _ attempt: Int) {
        let stand = { [weak self] in
            guard let self else { return }
            self.session = grant
            self.feed(connection: .link(.sessionStarted(grant), attempt: attempt))
        }
        guard !grant.isAnonymous else { return stand() }
        let register = DeviceRegister(device: DeviceDescription(configuration.device))
        send(register, doing: "register the device") { [weak self] result in
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
