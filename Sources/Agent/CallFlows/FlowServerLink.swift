public import BotWire
public import CallFlow
internal import CallParticipation
internal import CallWebhooks
internal import Core
internal import Synchronization

/// The names of a call for its flow's server.
public struct FlowWireCall: Sendable, Equatable {
    let call: WireCall
    /// The call for which this one was placed; nil if it was placed for none.
    let parent: String?
    /// Names its requests.
    var id: String { call.call }

    /// Makes names.
    ///
    /// - Parameter parent: The `CallSid` of the call for which this one was placed, by `Dial`; nil if it was placed for none.
    public init(_ values: FlowValues, isOutgoing: Bool, parent: String? = nil) {
        self.parent = parent
        call = WireCall(
            call: values.callSid, stream: "", account: TwilioWebhook.usualAccount, from: values.from, to: values.to,
            direction: parent != nil ? .dialled : isOutgoing ? .outgoing : .incoming)
    }
}

/// Asks the server of flows for documents and sounds, and reports the status of calls to it.
///
/// All methods may be called from any thread. ``retire()`` or ``finish()`` ends it.
public final class FlowServerLink: Sendable {
    private struct Use {
        var calls = 0
        var isRetired = false
        var isFinished = false
    }

    /// The server, and how it is asked.
    public let plan: FlowServerPlan
    private let client: WebhookClient
    private let sounds = FlowSounds()
    private let use = Mutex(Use())

    /// - Parameter warn: Reports what the operator must know, with the number of reports before it that were left out.
    public init(_ plan: FlowServerPlan, warn: @escaping @Sendable (_ what: String, _ leftOut: Int) -> Void) {
        self.plan = plan
        client = WebhookClient(plan.client, warn: warn)
    }

    /// Asks for a document.
    ///
    /// - Parameter number: Of the request in its call.
    public func page(
        _ request: FlowRequest, number: Int, for call: FlowWireCall
    ) async -> Result<FlowPage, FlowUnusable> {
        let parent = call.parent.map { [FormFields.Field("ParentCallSid", $0)] } ?? []
        let notice = TwilioWebhook(
            call.call, request.isAnswered ? .inProgress : .ringing, more: parent + request.result)
        let question = WebhookQuestion(request.webhook, form: notice.form, id: "\(call.id)-\(number)")
        switch await client.ask(question, within: plan.timeout, mostBytes: FlowDocument.longest) {
        case .failure(let fault): return .failure(FlowUnusable(fault.message))
        case .success(let answer):
            do throws(FlowFaults) {
                return .success(
                    FlowPage(try FlowDocument(parsing: answer.body, from: answer.address), at: answer.address))
            } catch {
                return .failure(FlowUnusable(error.faults.map(\.description).joined(separator: "; ")))
            }
        }
    }

    /// Gets a sound for a call, or one that was got before.
    public func sound(at address: WebAddress, for call: FlowWireCall) async -> Result<FlowSoundFile, FlowUnusable> {
        await sounds.file(at: address, for: call.id) { [client, plan] in
            await client.ask(
                WebhookQuestion(Webhook(address, .get)), within: plan.timeout,
                mostBytes: FlowServerPlan.longestSound
            ).map(\.body).mapError { FlowUnusable("\(address.shown) \($0.message)") }
        }
    }

    /// Reports the status of a call, if the plan says where.
    ///
    /// - Parameter number: Of the report in its call, from 0.
    func report(
        _ status: TwilioWebhook.Status, number: Int, seconds: Int? = nil, of call: FlowWireCall, _ id: CallID
    ) {
        guard let address = plan.status else { return }
        let fields = [
            FormFields.Field("CallbackSource", "call-progress-events"),
            FormFields.Field("SequenceNumber", "\(number)"),
        ]
        let duration = seconds.map { [FormFields.Field("CallDuration", "\($0)")] } ?? []
        let form = TwilioWebhook(call.call, status, more: fields + duration).form
        client.report(
            status.rawValue, of: id, WebhookQuestion(Webhook(address), form: form, id: "\(call.id)-status-\(number)"))
    }

    // MARK: Its end

    /// A call begins to use it.
    func enter() { use.withLock { $0.calls += 1 } }

    /// A call uses it no more.
    func leave() { end { $0.calls -= 1 } }

    /// No further call uses it: it ends with the last one.
    func retire() { end { $0.isRetired = true } }

    private func end(_ change: (inout Use) -> Void) {
        let isLast = use.withLock { use in
            change(&use)
            return use.isRetired && use.calls == 0
        }
        if isLast { Task { await finish() } }
    }

    /// Ends all requests. Reports of status have a second until then.
    public func finish() async {
        let isFirst = use.withLock { use in
            defer { use.isFinished = true }
            return !use.isFinished
        }
        if isFirst { await client.finish() }
    }
}
