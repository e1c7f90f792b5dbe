internal import CallControl
public import Logging
internal import Realtime
internal import Core

/// The accounts of a process, each with a device of its own, and one set of media workers and one sound card for all.
///
/// ``AccountSupervisor`` decides, and this carries it out.
public actor AccountSet {
    /// Makes an account's device, which is not connected. It may block.
    public typealias Maker = @Sendable (AccountsConfiguration.Account) async throws -> AccountDevice

    /// How long the calls may last of an account that is removed or changed, or has lost its login.
    public static let callPatience = Duration.seconds(600)

    /// What happens, for one listener. It ends with ``shutDown()``.
    public nonisolated let events: AsyncStream<AccountEvent>
    private let telling: AsyncStream<AccountEvent>.Continuation
    /// What the devices of the accounts share.
    public nonisolated let media: SharedMedia
    private let make: Maker
    private let logger: Logger
    /// As the process started; what it says of the process holds until its end.
    private let first: AccountsConfiguration
    /// Whether an account is tried again after any failure.
    private let restarts: Bool
    private var supervisor = AccountSupervisor(seed: .random(in: .min ... .max))
    private var slots: [String: Slot] = [:]
    private var order: [String] = []
    private var timer: Task<Void, Never>?
    private var mediaListener: Task<Void, Never>?
    private var isStopping = false

    private struct Slot {
        var account: AccountsConfiguration.Account
        var running: AccountDevice?
        /// Passes on the events of the device.
        var listener: Task<Void, Never>?
        /// Ends when the device is connected, or has failed.
        var attempt: Task<Void, Never>?
        /// Whether the end of the device was requested.
        var isEnding = false
        var failure: (any Error)?
        /// Whether the connection ended for good before the device reported that it is connected.
        var isLost = false
        /// Why it cannot continue, if that was reported.
        var lossReason: SignalingError?
        /// Whether it is drained.
        var isDraining = false
        /// Waits until the clock can be right.
        var clock: Task<Void, Never>?
    }

    /// Makes a set that is not started.
    ///
    /// - Parameters:
    ///   - configuration: Its accounts; if they have no names, the one that there is ends the set when it fails.
    ///   - media: What their devices share. It ends with the set.
    public init(
        _ configuration: AccountsConfiguration, media: SharedMedia, logger: Logger, making make: @escaping Maker
    ) {
        // A call has some ten events; this number waits if they are not read.
        (events, telling) = AsyncStream.makeStream(of: AccountEvent.self, bufferingPolicy: .bufferingOldest(16_384))
        self.media = media
        self.make = make
        self.logger = logger
        first = configuration
        restarts = configuration.isNamed
        for account in configuration.accounts {
            let name = account.name ?? ""
            slots[name] = Slot(account: account)
            order.append(name)
        }
    }

    /// Starts all accounts.
    public func start() {
        mediaListener = Task { [media] in
            await media.forEachEvent { await self.tell(.device($0), about: nil) }
        }
        for name in order { feed(.add(name)) }
    }

    /// The accounts, in the order of the configuration.
    public var members: [AccountMember] {
        order.compactMap { slots[$0] }.map { slot in
            AccountMember(
                name: slot.account.name, configuration: slot.account.configuration, device: slot.running?.device,
                isDraining: slot.isDraining, failure: slot.failure.map { "\($0)" })
        }
    }

    /// Has an account take no more calls until that is taken back, also with another device.
    ///
    /// - Parameter name: As in ``AccountMember/name``.
    /// - Returns: Whether it takes no calls now, or will take none: of an account whose device ends while the process continues,
    ///   the state of the next one.
    public func setDraining(_ isDraining: Bool, of name: String?) async -> Bool {
        let name = name ?? ""
        slots[name]?.isDraining = isDraining
        guard let device = slots[name]?.running?.device else { return isDraining }
        let isDrainingNow = await device.setDraining(isDraining)
        let hasNext = !isStopping && slots[name]?.isEnding != false
        return hasNext ? isDraining : isDrainingNow
    }

    /// The machine's network has changed: what waits for it is tried at once.
    public func networkChanged() async {
        for name in order {
            if let device = slots[name]?.running?.device {
                await device.networkChanged()
            } else if (slots[name]?.failure as? SignalingError)?.isOfNetwork == true {
                feed(.retry(name))
            }
        }
    }

    /// Whether the media workers and every device work, for a watchdog (``Device/isAlive()``).
    public func isAlive() async -> Bool {
        let isAlive = media.areWorkersAlive()
        // One that is stuck does not answer.
        for device in order.compactMap({ slots[$0]?.running?.device }) { _ = await device.isDraining }
        return isAlive
    }

    /// Takes no more calls, and returns when those that there are have ended, or after `limit`.
    public func finishCalls(within limit: Duration) async {
        stop()
        await withTaskGroup { group in
            for device in slots.values.compactMap(\.running?.device) {
                group.addTask { await device.finishCalls(within: limit) }
            }
        }
    }

    /// Hangs up all calls, and ends all accounts. Their last events come before ``events`` ends.
    public func shutDown() async {
        stop()
        await withTaskGroup { group in
            for device in slots.values.compactMap(\.running?.device) {
                group.addTask { await device.shutDown() }
            }
        }
        for slot in slots.values {
            slot.clock?.cancel()
            await slot.attempt?.value
            await slot.listener?.value
        }
        await media.close()
        await mediaListener?.value
        telling.finish()
    }

    private func stop() {
        isStopping = true
        feed(.stop)
        timer?.cancel()
    }

    // MARK: Another configuration

    /// Takes another configuration: accounts come, go and change, while calls of those that stay continue.
    ///
    /// - Returns: Of accounts without names: nothing but whether the only one has taken what it can, as `adopted`.
    public func adopt(_ new: AccountsConfiguration) async -> AccountChanges {
        let new = new.keepingProcess(of: first)
        var changes = AccountChanges()
        guard restarts else {
            if let account = new.accounts.first, await adoptOnly(account) { changes.adopted = [""] }
            return changes
        }
        let names = new.accounts.compactMap(\.name)
        for name in order where !names.contains(name) {
            changes.removed.append(name)
            feed(.remove(name))
        }
        for account in new.accounts { await take(account, into: &changes) }
        order = names.filter { slots[$0] != nil } + order.filter { slots[$0] != nil && !names.contains($0) }
        return changes
    }

    private func adoptOnly(_ account: AccountsConfiguration.Account) async -> Bool {
        if let device = slots[""]?.running?.device { return await device.adopt(account.configuration) }
        slots[""]?.account = account
        return true
    }

    private func take(_ account: AccountsConfiguration.Account, into changes: inout AccountChanges) async {
        guard let name = account.name else { return }
        let isBack = isBeingForgotten(name)
        let slot = slots[name]
        let differences = slot.map { account.differences(from: $0.account) } ?? ["account"]
        guard isBack || !differences.isEmpty else { return }
        let others = slots.filter { $0.key != name && !isBeingForgotten($0.key) }.values.map(\.account.configuration)
        if let obstacle = media.obstacle(to: account.configuration, besides: others) {
            changes.refused.append((name, obstacle))
            return
        }
        if isBack {
            slots[name]?.account = account
            changes.added.append(name)
            return feed(.add(name))
        }
        guard let slot else {
            slots[name] = Slot(account: account)
            order.append(name)
            changes.added.append(name)
            return feed(.add(name))
        }
        slots[name]?.account = account
        let sections = Set(differences.map { String($0.prefix { $0 != "." && $0 != "[" }) })
        if sections.isSubset(of: DeviceConfiguration.adoptedSections), let device = slot.running?.device,
            await device.adopt(account.configuration)
        {
            changes.adopted.append(name)
        } else {
            changes.restarted.append(name)
            feed(.change(name))
        }
    }

    /// Whether an account was removed, and its device has not ended yet.
    private func isBeingForgotten(_ name: String) -> Bool {
        if case .ending(.forget, _)? = supervisor.state(of: name) { return true }
        return false
    }

    // MARK: What the supervisor decides

    private func feed(_ input: AccountSupervisor.Input) {
        var outputs: [AccountSupervisor.Output] = []
        supervisor.handle(input, at: MonotonicClock.now, into: &outputs)
        for output in outputs { carryOut(output) }
        timer?.cancel()
        guard let deadline = supervisor.nextDeadline, !isStopping else { return }
        timer = Task {
            try? await Task.sleep(for: MonotonicClock.now.duration(to: deadline))
            if !Task.isCancelled { feed(.timerFired) }
        }
    }

    private func carryOut(_ output: AccountSupervisor.Output) {
        switch output {
        case .start(let name):
            slots[name]?.isEnding = false
            slots[name]?.isLost = false
            slots[name]?.attempt = Task { await run(name) }
        case .end(let name): end(name)
        case .forget(let name):
            if let slot = slots.removeValue(forKey: name) { tell(.removed, about: slot.account.name) }
            order.removeAll { $0 == name }
        case .wait(let name, let time, let failures):
            guard let slot = slots[name], let failure = slot.failure else { return }
            tell(.failed(failure, retryAfter: time, failures: failures), about: slot.account.name)
        case .ready: tell(.ready, about: nil)
        }
    }

    /// Makes and connects an account's device.
    private func run(_ name: String) async {
        guard let account = slots[name]?.account, !isStopping else { return }
        let made: AccountDevice
        do {
            made = try await make(account)
        } catch {
            return fail(name, error)
        }
        guard !isStopping, slots[name]?.isEnding == false else {
            await made.device.shutDown()
            return feed(.ended(name))
        }
        let device = made.device
        slots[name]?.running = made
        slots[name]?.listener = Task {
            for await event in device.events { self.hear(event, of: name) }
            self.stopped(name, device)
        }
        if slots[name]?.isDraining == true { await device.setDraining(true) }
        // A request to end that came meanwhile waits for this.
        guard slots[name]?.isEnding == false, !isStopping else { return }
        do throws(SignalingError) {
            try await device.connect()
        } catch {
            // A request to end waits for this.
            guard slots[name]?.isEnding == false, !isStopping else { return }
            slots[name]?.isEnding = true
            await device.shutDown()
            await slots[name]?.listener?.value
            slots[name]?.running = nil
            return fail(name, error)
        }
        guard slots[name]?.isEnding == false else { return }
        slots[name]?.failure = nil
        tell(.connected(account.configuration), about: account.name)
        feed(.connected(name))
        if slots[name]?.isLost == true { lose(name) }
    }

    /// Takes no more calls for an account, lets the present ones continue, and ends its device.
    private func end(_ name: String) {
        let wasEnding = slots[name]?.isEnding == true
        slots[name]?.isEnding = true
        // A device that is being made, or fails at this moment, is reported afterwards.
        guard !wasEnding, let running = slots[name]?.running else { return }
        Task {
            await running.device.finishCalls(within: Self.callPatience)
            await running.device.shutDown()
            await slots[name]?.attempt?.value
            await slots[name]?.listener?.value
            slots[name]?.running = nil
            feed(.ended(name))
        }
    }

    private func hear(_ event: DeviceEvent, of name: String) {
        guard let slot = slots[name] else { return }
        // How busy the workers are concerns all accounts, whichever has noticed.
        if case .loadChanged = event { return tell(.device(event), about: nil) }
        tell(.device(event), about: slot.account.name)
        guard case .signaling(let event) = event else { return }
        switch event {
        case .connected, .reconnected:
            slots[name]?.isLost = false
            slots[name]?.lossReason = nil
        case .error(let reason): slots[name]?.lossReason = reason
        case .disconnected:
            // For a device that still connects this is reported once it has connected.
            slots[name]?.isLost = true
            if case .running? = supervisor.state(of: name) { lose(name) }
        default: break
        }
    }

    /// The connection of an account that counted as connected has ended for good.
    private func lose(_ name: String) {
        guard let slot = slots[name], !slot.isEnding, !isStopping else { return }
        let failure =
            slot.lossReason
            ?? SignalingError(
                .disconnected, activity: "keep the account logged in", cause: "its connection has ended for good")
        slots[name]?.failure = failure
        guard restarts else { return giveUp(slot, failure) }
        tell(.lost, about: slot.account.name)
        feed(.lost(name))
    }

    /// The only account does not log in again by itself: the process ends when its calls have, and what has started it starts it again.
    private func giveUp(_ slot: Slot, _ failure: SignalingError) {
        Task {
            await slot.running?.device.finishCalls(within: Self.callPatience)
            if !isStopping { tell(.gaveUp(failure), about: slot.account.name) }
        }
    }

    /// A device has ended. Without a request its account has failed.
    private func stopped(_ name: String, _ device: Device) {
        guard let slot = slots[name], slot.running?.device === device, !slot.isEnding, !isStopping else { return }
        slots[name]?.running = nil
        fail(
            name,
            SignalingError(.internalError, activity: "run the account's device", cause: "it has ended by itself"))
    }

    private func fail(_ name: String, _ error: any Error) {
        guard let account = slots[name]?.account, !isStopping else { return }
        slots[name]?.failure = error
        let isOfTime =
            (error as? SignalingError).map { ClockPlausibility.isReason(for: $0, at: MonotonicClock.wallTime) } ?? false
        if !restarts, !isOfTime {
            tell(.gaveUp(error), about: account.name)
            return
        }
        if isOfTime {
            tell(.waitsForTime(error), about: account.name)
            retryWhenClockIsSet(name)
        }
        feed(.failed(name))
    }

    /// The clock may be set at any moment.
    private func retryWhenClockIsSet(_ name: String) {
        slots[name]?.clock?.cancel()
        slots[name]?.clock = Task {
            while !Task.isCancelled, !isStopping, !ClockPlausibility.canBeRight(MonotonicClock.wallTime) {
                try? await Task.sleep(for: .seconds(1))
            }
            if !Task.isCancelled { feed(.retry(name)) }
        }
    }

    private func tell(_ kind: AccountEvent.Kind, about name: String?) {
        guard case .dropped = telling.yield(AccountEvent(account: name, kind: kind)) else { return }
        logger.warning("An event of an account is lost, because nothing takes events any more")
    }
}

extension SignalingError {
    /// Whether it may be gone when the network is another one.
    fileprivate var isOfNetwork: Bool { code == .serverUnreachable || code == .timedOut || code == .disconnected }
}
