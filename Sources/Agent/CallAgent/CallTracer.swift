internal import Call
internal import CallControl
internal import CallMedia
internal import CallParticipation
internal import Core
public import Monitoring
internal import Realtime
public import Tracing

/// Has the calls of a device traced: names their spans as they begin, and hands over their traces as they end.
public struct CallTracer: Sendable {
    private let configuration: TraceConfiguration
    private let account: String
    private let take: @Sendable (Trace) -> Void

    /// - Parameters:
    ///   - account: The account's name; empty for the only one.
    ///   - take: Is handed the trace of each call that is recorded, on the device's actor, and must return at once.
    public init(
        _ configuration: TraceConfiguration, account: String = "", take: @escaping @Sendable (Trace) -> Void
    ) {
        self.configuration = configuration
        self.account = account
        self.take = take
    }

    /// What a call that is about to begin is in traces.
    ///
    /// - Parameters:
    ///   - cause: The span of this process that it is made for; nil for none. What an inviter that is followed says comes before.
    ///   - foreign: Whether callers may be others than users that the service has logged in.
    func begin(_ call: CallSession, for cause: TraceContext?, foreign: Bool) -> CallTrace {
        var generator = SystemRandomNumberGenerator()
        let followed = isFollowed(call, foreign: foreign) ? call.receivedTrace : nil
        let parent = followed ?? cause
        let trace = parent?.trace ?? TraceID(using: &generator)
        let isSampled = parent?.isSampled ?? configuration.sampling.takes(trace)
        let context = TraceContext(trace: trace, span: SpanID(using: &generator), isSampled: isSampled)
        let link = followed == nil ? call.receivedTrace : nil
        if let followed { return CallTrace(context, parent: .remote(followed.span)) }
        if let cause { return CallTrace(context, parent: .own(cause.span), link: link) }
        return CallTrace(context, link: link)
    }

    private func isFollowed(_ call: CallSession, foreign: Bool) -> Bool {
        switch configuration.parents {
        case .none: false
        case .users: !foreign && call.trunk == nil
        case .all: true
        }
    }

    /// Hands over the trace of a call that has ended.
    ///
    /// - Parameter own: Who the device is to its service.
    func end(_ call: CallSession, _ record: CallRecord, own: UserID?) {
        var generator = SystemRandomNumberGenerator()
        let epoch = MonotonicClock.now.nanoseconds - MonotonicClock.wallNanoseconds
        let trace = call.trace?.trace(
            record, call.mediaReport, attributes(of: call, own), epoch: epoch, using: &generator)
        if let trace { take(trace) }
    }

    private func attributes(of call: CallSession, _ own: UserID?) -> [TraceSpan.Attribute] {
        var attributes: [TraceSpan.Attribute] = [.init("handset.source", .text(call.audio.source.word))]
        if !account.isEmpty { attributes.append(.init("handset.account", .text(account))) }
        guard configuration.hasNames else { return attributes }
        attributes.append(.init("handset.peer", .text(call.peer.text)))
        if let own { attributes.append(.init("handset.user", .text(own.text))) }
        return attributes
    }
}
