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

    /// Follows the script in a call, and hangs up when it ends, unless the call is to continue.
    func start(_ call: CallID, of device: Device, _ progress: ProgressLines) throws(RealtimeError) {
        let probe = probe
        let keys = KeyPresses { key in
            do throws(DigitError) {
                try await device.press(String(key), on: call)
            } catch {
                probe.refuseKeys("\(error)")
            }
        }
        let started = try RealtimeThread(name: "call-script") {
            probe.run(press: { keys.press($0) }, note: { progress.say($0) })
            keys.finish()
            Task { await device.hangUp(call) }
        }
        thread.withLock { $0 = started }
    }

    /// Ends when the call has ended, and gives the caller the reason.
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

/// Presses keys one after the other, in the order in which a caller's thread gives them.
struct KeyPresses: Sendable {
    private let keys: AsyncStream<Character>.Continuation

    /// - Parameter press: Presses a key; the next one waits for it.
    init(_ press: @escaping @Sendable (Character) async -> Void) {
        // A key takes a fifth of a second, so few ever wait.
        let (given, keys) = AsyncStream.makeStream(of: Character.self, bufferingPolicy: .bufferingOldest(1_024))
        self.keys = keys
        Task { for await key in given { await press(key) } }
    }

    func press(_ key: Character) { keys.yield(key) }

    /// No key follows.
    func finish() { keys.finish() }
}
