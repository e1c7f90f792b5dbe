internal import AudioPort
public import CallPorts
internal import Realtime

/// The ports of a device's calls in this process.
struct DevicePorts {
    let news: AsyncStream<PortNews>
    private let sink: AsyncStream<PortNews>.Continuation
    /// Nil until the first port.
    private var ports: CallPorts?
    private var provider: (plan: PortPlan, converse: @Sendable (CallPort) async -> Void)?

    init() {
        // Who speaks: a few a second in each call.
        (news, sink) = AsyncStream.makeStream(of: PortNews.self, bufferingPolicy: .bufferingOldest(16_384))
    }

    mutating func provide(_ plan: PortPlan, _ converse: @escaping @Sendable (CallPort) async -> Void) {
        provider = (plan, converse)
    }

    var areProvided: Bool { provider != nil }

    /// Opens the port of a call whose media is about to start.
    ///
    /// - Returns: The media worker's side; nil if no ports are provided.
    mutating func begin(for id: CallID) throws -> PortLine? {
        guard let provider else { return nil }
        let opened = try open(provider.plan, for: id)
        let (port, converse) = (opened.port, provider.converse)
        Task { await converse(port) }
        return opened.line
    }

    mutating func open(_ plan: PortPlan, for id: CallID) throws(RealtimeError) -> OpenedPort {
        let made: CallPorts
        if let ports {
            made = ports
        } else {
            made = try CallPorts { [sink] in sink.yield($0) }
            ports = made
        }
        return try made.open(plan, call: id.number)
    }

    func isClosed(_ id: CallID) -> Bool { ports?.isClosed(call: id.number) ?? false }

    func sendDigit(_ digit: Character, heldFor time: Duration, to id: CallID) {
        ports?.sendDigit(digit, heldFor: time, to: id.number)
    }

    func hearOut(_ id: CallID) { ports?.hearOut(call: id.number) }

    func end(_ id: CallID) { ports?.end(call: id.number) }

    func finish() { ports?.finish() }
}

extension Device {
    /// Has this process take part in each call whose source is ``BehaviourConfiguration/Source/program`` or
    /// ``AudioBehaviour/Source/program``: `converse` runs as a task of its own from the moment at which the call's media is
    /// prepared. What it writes is played as soon as the caller can hear it. When it returns and nobody else refers to the
    /// port, the caller hears silence; the call goes on.
    public func providePorts(
        _ plan: PortPlan = PortPlan(), _ converse: @escaping @Sendable (CallPort) async -> Void
    ) { participants.provide(plan, converse) }
}

extension CallPort {
    /// The call whose sound it is.
    public var call: CallID { CallID(number: callNumber) }
}
