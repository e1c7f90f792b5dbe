internal import Call
internal import CallControl
internal import CallParticipation
internal import Logging
internal import SignalingClient

/// Hands to the signaling service what calls order of it, in that order, and feeds the calls what becomes of it.
struct CallRequests {
    /// A request, which runs on the device until it suspends.
    typealias Request =
        nonisolated(nonsending) @Sendable (any SignalingService) async throws(SignalingError) -> Void

    private let service: any SignalingService
    private let logger: Logger

    init(_ service: any SignalingService, _ logger: Logger) {
        self.service = service
        self.logger = logger
    }

    /// Carries out an order of a call's session.
    func carryOut(_ order: CallCourse.ServiceOrder, of id: CallID, for device: isolated Device) {
        switch order {
        case .invite(let options):
            // The id comes with the event `inviteSent`, ahead of everything else about the invite.
            request(of: id, for: device, [], orElse: { .inviteFailed($0) }) { (service) throws(SignalingError) in
                _ = try await service.invite(options)
            }
        case .cancel(let invite, let withdrawal):
            request(
                of: id, for: device, [.event(.cancelConfirmed)], orElse: { .cancelFailed($0) }
            ) { (service) throws(SignalingError) in
                try await service.cancel(invite, withdrawal)
            }
        case .accept(let invite, let acceptance):
            request(
                of: id, for: device, [.acceptTaken, .event(.answerConfirmed)], orElse: { .answerFailed($0) }
            ) { (service) throws(SignalingError) in
                try await service.accept(invite, acceptance)
            }
        case .reject(let invite, let rejection):
            request(
                of: id, for: device, [.event(.answerConfirmed)], orElse: { .answerFailed($0) }
            ) { (service) throws(SignalingError) in
                try await service.reject(invite, rejection)
            }
        case .hangUp(let news): hangUp(news, for: device)
        case .signal(let signal): send(signal, for: device)
        case .probe(let invite, let peer): probe(invite, peer, of: id, for: device)
        }
    }

    /// Notifies the peer of a call that we hung up. The end of the session waits for it: in the other order the peer would
    /// learn of a lost device in place of the call's end (contract CALL-3).
    func hangUp(_ news: CallHangUp, for device: isolated Device) {
        device.hangUpBegan()
        let sending = hand(for: device) { (service) throws(SignalingError) in try await service.hangUp(news) }
        Task {
            if let error = await sending.value {
                logger.warning("The peer may not have heard that we hung up", metadata: ["error": "\(error)"])
            }
            device.hangUpEnded()
        }
    }

    /// Rejects an invite that is no call, and on which no decision came in time.
    func reject(_ invite: InviteID, _ rejection: InviteRejection, for device: isolated Device) {
        let sending = hand(for: device) { (service) throws(SignalingError) in
            try await service.reject(invite, rejection)
        }
        Task {
            let error = await sending.value
            device.handle(.incoming(error.map { .answerFailed($0) } ?? .answerConfirmed), for: invite)
        }
    }

    /// Hands a request to the service before this returns, so that requests leave in the order in which they are made: an invite
    /// that overtakes a hang-up would find the peer busy.
    ///
    /// - Returns: What becomes of it, which must not be waited for by what hands it over: a call is not fed again before that
    ///   order is carried out.
    private func hand(for device: isolated Device, _ request: @escaping Request) -> Task<SignalingError?, Never> {
        Task.immediate {
            // Where the device runs, so that the request begins at once.
            _ = device
            do throws(SignalingError) {
                try await request(service)
                return nil
            } catch {
                return error
            }
        }
    }

    /// - Parameter confirmations: What the call is fed when the service has done it.
    private func request(
        of id: CallID, for device: isolated Device, _ confirmations: [CallCourse.ServiceNotice],
        orElse failure: @escaping @Sendable (SignalingError) -> CallMachine.ServiceEvent, _ ask: @escaping Request
    ) {
        let asking = hand(for: device, ask)
        Task {
            if let error = await asking.value { return device.feed(.service(.event(failure(error))), to: id) }
            for confirmation in confirmations { device.feed(.service(confirmation), to: id) }
        }
    }

    private func send(_ signal: CallSignal, for device: isolated Device) {
        // In order: candidates come before their end, and a transfer's success before the hang-up that follows it.
        let sending = hand(for: device) { (service) throws(SignalingError) in try await service.send(signal) }
        Task {
            guard let error = await sending.value else { return }
            // The log alone reports a lost key.
            logger.log(
                level: signal.kind == .key ? .notice : .debug, "A signal did not reach the peer",
                metadata: ["type": "\(signal.type)", "error": "\(error)"])
        }
    }

    private func probe(_ invite: InviteID, _ peer: UserID?, of id: CallID, for device: isolated Device) {
        Task {
            do throws(SignalingError) {
                let probe = try await service.probe(invite, peer: peer)
                device.feed(.service(.probed(probe)), to: id)
            } catch {
                logger.debug(
                    "The peer of a call could not be probed", metadata: ["call": "\(id)", "error": "\(error)"])
                device.feed(.service(.probed(nil)), to: id)
            }
        }
    }
}
