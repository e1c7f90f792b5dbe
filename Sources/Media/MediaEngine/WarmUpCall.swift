internal import CallMedia
internal import Core
internal import AudioKit
internal import Playout
internal import Realtime
internal import SecureTransport
internal import Synchronization

/// A call of a few frames between two workers' loops on the calling thread, so that the code of a call is in memory
/// before a media worker needs it: on a worker's thread each page fault would delay a frame.
enum WarmUpCall {
    /// Media time: enough for sound to be decoded and encoded on both sides, and for reports.
    private static let frames = 8

    /// Takes some 10 ms, most of it for loading code. The first call reports what goes wrong here.
    static func run() {
        guard var caller = try? Side(), var callee = try? Side() else { return }
        var generator = SystemRandomNumberGenerator()
        let there = SRTPKey.random(.aeadAES128GCM, using: &generator)
        let back = SRTPKey.random(.aeadAES128GCM, using: &generator)
        let tone = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -20))
        let start = MonotonicClock.now
        guard
            (try? caller.begin(to: callee.address, local: 1, remote: 2, send: there, receive: back, tone, at: start))
                != nil,
            (try? callee.begin(
                to: caller.address, local: 2, remote: 1, send: back, receive: there, AudioBehaviour(source: .echo),
                at: start)) != nil
        else { return }
        for frame in 0..<frames {
            let now = start.advanced(byNanoseconds: Int64(frame) * 20_000_000)
            caller.step(at: now)
            callee.step(at: now)
        }
    }

    /// A worker's loop without its thread, with a socket on the loopback.
    @safe
    private struct Side: ~Copyable {
        private var loop: WorkerLoop
        private var commands: SPSCRing<WorkerCommand>.Producer
        private let wakeup: Wakeup
        private let socket: UnsafeMutablePointer<UDPSocket>
        private var call: UnsafeMutablePointer<MediaCall>?
        let address: SocketAddress

        init() throws {
            let loopback = SocketAddress.loopbackIPv4
            let bound = try UDPSocket(boundTo: loopback, receiveBufferBytes: 16_384)
            var sockets = try SocketSet()
            let wakeup = try Wakeup()
            let slot = SocketSet.mainSlot(isIPv6: false)
            try sockets.makeWatcher().watch(bound, slot: slot)
            self.wakeup = wakeup
            address = bound.localAddress
            unsafe socket = .allocate(capacity: 1)
            unsafe socket.initialize(to: bound)
            unsafe sockets.insert(socket, at: slot)
            let commandRing = SPSCRing<WorkerCommand>(capacity: 4)
            let eventRing = SPSCRing<WorkerEvent>(capacity: 64)
            let forwardedRing = SPSCRing<ForwardedDatagram>(capacity: 1)
            let ends = WorkerLoop.Ends(
                sockets: sockets, wakeup: self.wakeup.handle, eventSignal: self.wakeup.handle,
                connectionSignal: self.wakeup.handle, forwarded: forwardedRing.producer,
                commands: commandRing.consumer, events: eventRing.producer)
            loop = unsafe WorkerLoop(ends, callLimit: 1)
            commands = commandRing.producer
        }

        deinit {
            if let call = unsafe call {
                unsafe call.deinitialize(count: 1)
                unsafe call.deallocate()
            }
            unsafe socket.deinitialize(count: 1)
            unsafe socket.deallocate()
        }

        mutating func begin(
            to remote: SocketAddress, local localSSRC: UInt32, remote remoteSSRC: UInt32, send: SRTPKey,
            receive: SRTPKey, _ audio: AudioBehaviour, at now: Instant
        ) throws {
            let peer = PeerPlan(
                transport: .direct(to: remote), protection: .keys(send: send, receive: receive),
                remoteSSRC: remoteSSRC, localSSRC: localSSRC, canonicalName: "warm-up", sendPayloadType: 111,
                receivePayloadType: 111, randomSeed: UInt64(localSSRC))
            let plan = MediaCallPlan(
                peer: peer, encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: audio, start: .atOnce)
            let made = unsafe try MediaCall.make(
                id: MediaCallID(rawValue: 0), plan: plan, rings: CallRings(), at: now)
            unsafe call = made
            _ = unsafe commands.push(.add(made))
        }

        mutating func step(at now: Instant) { loop.step(at: now) }
    }
}

/// The thread on which an engine's ``WarmUpCall`` runs: one at a time, and none once the engine is ending.
final class WarmUpThread: Sendable {
    private struct State {
        var thread: RealtimeThread?
        var isEnded = false
    }

    // Held while a thread is started or waited for, some 10 ms at most, so that `end()` finds every thread that exists.
    private let state = Mutex(State())

    /// Runs `body` on a new thread, once the previous one is done. Does nothing after ``end()``.
    ///
    /// - Returns: False if no thread could be started.
    func begin(_ body: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard !state.isEnded else { return true }
            state.thread?.join()
            state.thread = try? RealtimeThread(name: "media-warm-up", body)
            return state.thread != nil
        }
    }

    /// Waits until nothing runs.
    func wait() { state.withLock { $0.thread?.join() } }

    /// Waits until nothing runs, and prevents new runs.
    func end() {
        state.withLock { state in
            state.isEnded = true
            state.thread?.join()
        }
    }
}
