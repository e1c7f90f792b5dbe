internal import CallControl
internal import HTTPTransport
internal import Logging
internal import NIOCore
internal import Realtime
internal import SIP
internal import SIPSignaling
internal import SignalingClient
internal import Core

/// Connects an account's machine with its sockets, the clock and the application. Everything happens on one event loop.
final class SIPDriver: SIPEdgeOwner {
    private let loop: any EventLoop
    private let resolver: SIPResolver
    private let edge: SIPEdge
    private let hub: EventHub<SignalingEvent>
    private let logger: Logger
    private var machine: AccountMachine
    private var promises: [UInt64: EventLoopPromise<AccountAnswer>] = [:]
    private var ticketCount: UInt64 = 0
    private var timer: WakeUpTimer
    /// The server's address that was tried last.
    private var lastTarget: SIPTarget?
    private var certificateFault: CertificateFault?
    /// One line at once and one a minute: a server that does it does it with each response.
    private var misplacedLimit = LogLimit(burst: 1, perSecond: 1.0 / 60)
    private var unreadableLimit = LogLimit(burst: 1, perSecond: 1.0 / 60)
    private var unsentLimit = LogLimit(burst: 5, perSecond: 1.0 / 60)
    /// Inputs that came while the machine's outputs were carried out.
    private var inputs: [AccountInput] = []
    private var isBusy = false
    /// The peak of transactions' memory since the last release to the system, and the time of that release.
    private var mostBytes = 0
    private var released: Instant?

    init(
        _ machine: AccountMachine, resolver: SIPResolver, edge: SIPEdge, loop: any EventLoop,
        hub: EventHub<SignalingEvent>, logger: Logger
    ) {
        self.machine = machine
        self.resolver = resolver
        self.edge = edge
        self.loop = loop
        timer = WakeUpTimer(on: loop)
        self.hub = hub
        self.logger = logger
        edge.attach(to: self)
    }

    var connectionState: ConnectionState { machine.connectionState }

    var session: SessionGrant? { machine.session }

    private var now: Instant { Instant(NIODeadline.now()) }

    func ask(_ request: AccountRequest, _ promise: EventLoopPromise<AccountAnswer>) {
        ticketCount += 1
        promises[ticketCount] = promise
        feed(.request(ticketCount, request))
    }

    // MARK: The machine

    private func feed(_ input: AccountInput) {
        inputs.append(input)
        guard !isBusy else { return }
        isBusy = true
        while !inputs.isEmpty {
            var outbox: [AccountOutput] = []
            machine.handle(inputs.removeFirst(), at: now, into: &outbox)
            for output in outbox { carryOut(output) }
        }
        isBusy = false
        arm()
        releaseMemory()
    }

    /// Returns the memory of a flood of requests to the system once the flood has ended, and not only to the heap.
    private func releaseMemory() {
        let bytes = machine.transactionBytes
        mostBytes = max(mostBytes, bytes)
        // It delays allocations by some milliseconds, and so the set-up of calls.
        guard mostBytes >= Self.worthReleasing, bytes <= mostBytes / 4, !machine.hasCalls else { return }
        if let released, released.duration(to: now) < Self.releaseInterval { return }
        released = now
        mostBytes = bytes
        ProcessMemory.releaseFreeMemory()
    }

    private static let worthReleasing = 1 << 20
    private static let releaseInterval = Duration.seconds(15)

    private func carryOut(_ output: AccountOutput) {
        switch output {
        case .resolve: resolve()
        case .lookUp(let name): lookUp(name)
        case .open(let number, let target):
            lastTarget = target
            logger.debug("Opening a flow to the SIP server", metadata: ["target": "\(target)"])
            edge.open(number, target)
        case .close(let number): edge.close(number)
        case .ping(let flow, let keepalive): edge.ping(flow, keepalive)
        case .transmit(let message, let flow): if !edge.transmit(message, flow) { noteUnsent(message) }
        case .event(let event): hub.publish(event)
        case .answer(let ticket, let answer): promises.removeValue(forKey: ticket)?.succeed(answer)
        case .note(let note): log(note)
        }
    }

    private func resolve() {
        resolver.locate { [weak self] targets in self?.resolved(targets) }
    }

    private func lookUp(_ name: String) {
        resolver.lookUp(name) { [weak self] hosts in self?.feed(.found(name, hosts)) }
    }

    private func resolved(_ targets: [SIPTarget]) {
        if targets.isEmpty {
            logger.warning("The SIP server's name has no address")
        } else {
            logger.debug(
                "The SIP server has been looked up",
                metadata: ["targets": "\(targets.map(\.description).joined(separator: ", "))"])
            edge.trust(targets)
        }
        feed(.resolved(targets))
    }

    /// Wakes the machine at its deadline, or earlier, which does no harm.
    private func arm() {
        timer.set(machine.nextDeadline, wakeUp)
    }

    private var wakeUp: @Sendable () -> Void {
        let bound = NIOLoopBound(self, eventLoop: loop)
        return {
            let driver = bound.value
            driver.timer.clear()
            driver.feed(.timerFired)
        }
    }

    private func log(_ note: AccountNote) {
        switch note {
        case .registered(let seconds): logger.info("Registered at the SIP server", metadata: ["seconds": "\(seconds)"])
        case .registrationFailed(let status, let wait):
            logger.warning(
                "The SIP server did not register the device", metadata: ["status": "\(status)", "next": "\(wait.text)"])
        case .unreachable(let wait, let failure):
            logger.warning(
                "The SIP server cannot be reached",
                metadata: ["next": "\(wait.text)", "error": "\(failure.text)"])
        case .flowLost(let transport):
            logger.info("The flow to the SIP server has ended", metadata: ["transport": "\(transport.rawValue)"])
        case .answerMissing(let invite, let peer):
            logger.notice(
                "A call was ended because its caller did not answer the offer that it requested",
                metadata: ["invite": "\(invite)", "peer": "\(peer)"])
        case .offerWithdrawn(let invite):
            logger.debug(
                "A peer withdrew a new offer; the call continues unchanged", metadata: ["invite": "\(invite)"])
        case .offerUnanswered(let invite):
            logger.notice(
                "A peer's new offer was refused; the call continues unchanged", metadata: ["invite": "\(invite)"])
        case .offerRefused(let invite, let status):
            logger.notice(
                "The peer refused a new offer; the call continues unchanged",
                metadata: ["invite": "\(invite)", "status": "\(status)"])
        case .keyRefused(let invite, let status):
            logger.notice(
                "The peer did not take a key by INFO", metadata: ["invite": "\(invite)", "status": "\(status)"])
        case .overloaded(let count):
            logger.warning(
                "Requests of SIP peers were refused with 503, because earlier ones use all the memory allowed to them",
                metadata: ["count": "\(count)", "bytes": "\(machine.transactionBytes)"])
        case .foreign(let method, let host, let count):
            logger.warning(
                "A SIP message for a call or a request of this account came from another source and was refused",
                metadata: [
                    "method": "\(method?.rawValue ?? "unknown")", "source": "\(host?.text ?? "unknown")",
                    "count": "\(count)",
                    "advice":
                        "if the source is a node of the server, have the server's name lead to it, or name it in account.sip.identity_from",
                ])
        case .strangerRefused(let host, let count):
            logger.notice(
                "A call did not come from the SIP server and was dropped",
                metadata: [
                    "source": "\(host?.text ?? "unknown")", "count": "\(count)",
                    "rule": "account.sip.calls_from: server",
                ])
        case .mailbox(let event): log(event)
        }
    }

    private func log(_ event: MailboxEvent) {
        switch event {
        case .subscribed(let peer, let seconds):
            logger.info(
                "A peer is notified of the mailbox", metadata: ["peer": "\(peer)", "seconds": "\(seconds)"])
        case .unsubscribed(let peer):
            logger.info("A peer is no longer notified of the mailbox", metadata: ["peer": "\(peer)"])
        case .lost(let peer, let status):
            logger.info(
                "A peer does not take notifications of the mailbox any more",
                metadata: ["peer": "\(peer)", "status": "\(status)"])
        case .refused(let host, let count):
            logger.notice(
                "A peer was not allowed to be notified of the mailbox",
                metadata: [
                    "source": "\(host?.text ?? "unknown")", "count": "\(count)",
                    "rule": "behaviour.voicemail.notify: users who may, as the account's server names them",
                ])
        case .undelivered(let address, let status):
            logger.notice(
                "A notification of the mailbox was not taken",
                metadata: ["to": "\(address)", "status": "\(status)", "rule": "behaviour.voicemail.announce_to"])
        }
    }

    /// Logs a message that has no flow. The call of a request reports its failure; a response and a CANCEL have only this line.
    private func noteUnsent(_ message: SIPMessage) {
        guard unsentLimit.admit(at: now) != nil else { return }
        let headers: SIPHeaders
        let name: String
        switch message {
        case .request(let request): (headers, name) = (request.headers, request.method.rawValue)
        case .response(let response):
            headers = response.headers
            name = "\(response.status) \(headers.sequence?.method.rawValue ?? "")"
        }
        logger.notice(
            "A SIP message was not sent, because its connection has ended",
            metadata: [
                "message": "\(name)", "invite": "\(headers.callID ?? "")", "unsent": "\(edge.unsentMessages)",
            ])
    }

    // MARK: The sockets

    func opened(_ flow: SIPFlow) {
        noteCertificate()
        feed(.opened(flow))
    }

    /// Logs a faulty renewal of the certificate files once, and not for each connection.
    private func noteCertificate() {
        let fault = edge.certificateFault
        defer { certificateFault = fault }
        guard let fault, fault != certificateFault else { return }
        logger.warning(
            "The SIP server still gets the earlier certificate, because the new files cannot be used",
            metadata: ["error": "\"\(fault.path)\" \(fault.message)"])
    }

    func failed(_ number: Int, _ reason: FlowFailure) {
        noteCertificate()
        if number > 0 {
            logger.debug("A flow has ended", metadata: ["number": "\(number)", "error": "\(reason.text)"])
        }
        feed(.failed(number, reason))
    }

    func received(_ message: SIPMessage, _ flow: SIPFlow) { feed(.received(message, flow)) }

    func ponged(_ number: Int) { feed(.ponged(number)) }

    func mapped(_ number: Int, _ address: PeerAddress) { feed(.mapped(number, address)) }

    func misplaced(_ status: Int, from peer: PeerAddress, by number: Int) {
        if misplacedLimit.admit(at: now) != nil {
            logger.warning(
                "A response of the SIP server was dropped, because it came from another port than the request went to",
                metadata: [
                    "status": "\(status)", "from": "\(peer)",
                    "expected": "\(lastTarget.map { "\($0.address)" } ?? "nothing")",
                    "dropped": "\(edge.misplacedResponses)",
                ])
        }
        feed(.misplaced(number, peer))
    }

    func unreadable(_ fault: SIPParseError, from peer: PeerAddress) {
        guard let withheld = unreadableLimit.admit(at: now) else { return }
        logger.warning(
            "A message of the SIP server cannot be read",
            metadata: ["error": "\(fault)", "from": "\(peer)", "withheld": "\(withheld)"])
    }

    /// Called by the watcher of the machine's network.
    func networkChanged() {
        guard let target = lastTarget else { return }
        feed(.networkChanged(source: edge.source(to: target)))
    }

    func admits(_ message: SIPMessage, by flow: SIPFlow) -> Bool {
        // The machine knows where answers to its requests come from.
        guard case .request(let request) = message else { return true }
        var outbox: [AccountOutput] = []
        let isAdmitted = machine.admits(request, by: flow, at: now, into: &outbox)
        for output in outbox { carryOut(output) }
        return isAdmitted
    }

    func expects(_ host: SIPHost) -> Bool { machine.expects(host) }

    func isInUse(_ number: Int) -> Bool { machine.isInUse(number) }
}
