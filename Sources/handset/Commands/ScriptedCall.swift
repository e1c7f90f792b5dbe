internal import Loopback
internal import CallAgent
internal import CallControl
internal import CallScript
internal import Realtime
internal import Synchronization

/// A caller that follows a script in a call of a device.
final class ScriptedCall: Sendable {
    private let probe: CallProbe<ScriptedCaller>
    private let thread = Mutex<RealtimeThread?>(nil)

    init(_ script: CallScript, sounds: [Int: [Int16]] = [:]) throws {
        probe = try CallProbe(ScriptedCaller(script, sounds: sounds))
    }

    /// Makes the caller the program of the device's next call.
    func provide(to device: Device) async { await device.provideLines { [probe] in probe.takeLine() } }

    /// Follows the script in a call, and hangs up at its end unless the call goes on then.
    func start(_ call: CallID, of device: Device, _ progress: ProgressLines) throws(RealtimeError) {
        let probe = probe
        let started = try RealtimeThread(name: "call-script") {
            probe.run(
                press: { key in
                    Task {
                        do throws(DigitError) {
                            try await device.press(String(key), on: call)
                        } catch {
                            probe.refuseKeys("\(error)")
                        }
                    }
                }, note: { progress.say($0) })
            Task { await device.hangUp(call) }
        }
        thread.withLock { $0 = started }
    }

    /// Ends once the call is over, and tells the caller why it is.
    func finish(_ record: CallRecord?, isInterrupted: Bool) -> ScriptedCaller {
        probe.stop()
        thread.withLock { $0.take() }?.join()
        let isByCallee = record?.endedBy == .remote
        probe.caller.end(
            isInterrupted
                ? "the call was cut short"
                : isByCallee ? "the callee hung up" : "the call ended: \(record?.reason.rawValue ?? "unknown")",
            isByCallee: isByCallee)
        return probe.caller
    }
}
