// Connectivity: ICE, DTLS and streams to TURN servers of all calls, on one thread, through the media workers' sockets.

package import ICE
package import Core
package import CallMedia
package import Realtime
internal import Synchronization
package import TLS

/// Runs all calls' connections (ICE, TURN, DTLS) on one ordinary thread, beside the media workers.
///
/// Workers forward everything that is not media, and receive paths and keys. So the computation and memory of a
/// handshake never delay a call's next frame, and a worker that is flooded with STUN drops it without harm.
package final class ConnectionThread: Sendable {
    /// Commands of the control side.
    package enum Command: Sendable {
        case open(SessionBox)
        case remote(MediaCallID, RemoteConnection)
        case candidate(MediaCallID, String)
        case endOfCandidates(MediaCallID)
        case restart(MediaCallID, ICECredentials)
        /// Nothing has come on the call's path for a while.
        case fellSilent(MediaCallID)
        case close(MediaCallID)
        case stop
    }

    /// Events of connections.
    package enum Event: Sendable {
        case candidate(MediaCallID, String)
        case candidatesComplete(MediaCallID)
        case connected(MediaCallID, ICEPath)
        case pathLost(MediaCallID)
        case quiet(MediaCallID)
        case back(MediaCallID)
        case relayFailed(MediaCallID, server: String, reason: String)
        case relayOverrun(MediaCallID, server: String, notSent: Int, notReceived: Int)
        case failed(MediaCallID, ConnectionFailure)
        case closed(MediaCallID)
        case secured(MediaCallID)
    }

    /// Hands a session from the control side to the thread.
    package struct SessionBox: @unchecked Sendable {
        // Untouched by the control side once it is in a command.
        let session: ConnectionSession
    }

    private let commands = Mutex<[Command]>([])
    private let wakeup: Wakeup
    private let thread = Mutex<RealtimeThread?>(nil)

    package init() throws(RealtimeError) { wakeup = try Wakeup() }

    /// Workers signal this when they have forwarded something.
    package var signal: WakeupHandle { wakeup.handle }

    /// Starts the thread, for these workers.
    ///
    /// - Parameter trust: Certificate authorities for TURN servers over TLS.
    package func start(
        _ workers: [any ConnectionTransport], trust: TrustRoots, tell: @escaping @Sendable (Event) -> Void
    ) throws(RealtimeError) {
        let loop = LoopBox(ConnectionLoop(workers: workers, streams: try RelayStreams(trust: trust), tell: tell))
        let started = try RealtimeThread(name: "connections", stackBytes: 1 << 20) { [self] in
            loop.run(wakeup.handle) {
                commands.withLock { commands in
                    defer { commands = [] }
                    return commands
                }
            }
        }
        thread.withLock { $0 = started }
    }

    /// Hands the loop to its thread.
    private final class LoopBox: @unchecked Sendable {
        // Made before the thread starts, and touched by it alone from then on.
        private var loop: ConnectionLoop

        init(_ loop: ConnectionLoop) { self.loop = loop }

        func run(_ wakeup: WakeupHandle, _ takeCommands: () -> [ConnectionThread.Command]) {
            while !loop.isStopped {
                let outcome = DeadlineWait.wait(
                    until: loop.nextDeadline, wakeup: wakeup, socket: loop.descriptor)
                if outcome.isSignalled { wakeup.clear() }
                for command in takeCommands() { loop.handle(command, at: MonotonicClock.now) }
                loop.step(at: MonotonicClock.now)
            }
        }
    }

    /// Begins a connection.
    ///
    /// - Parameters:
    ///   - worker: The index of its worker.
    ///   - slots: The slot from which each local address sends.
    ///   - ownSlots: The slots of the call's own sockets.
    /// - Returns: The candidates that are known at once, as values of `candidate` attributes.
    package func open(
        _ id: MediaCallID, worker: Int, _ plan: ConnectionPlan, slots: [SocketAddress: Int], ownSlots: [Int],
        at now: Instant
    ) -> [String] {
        let session = ConnectionSession(id, worker: worker, plan, slots: slots, ownSlots: ownSlots, at: now)
        let candidates = session.takeFirstCandidates()
        send(.open(SessionBox(session: session)))
        return candidates
    }

    /// Gives the thread a command. Never blocks.
    package func send(_ command: Command) {
        commands.withLock { $0.append(command) }
        wakeup.signal()
    }

    /// Ends all connections and the thread.
    package func stop() {
        send(.stop)
        thread.withLock { $0 }?.join()
    }
}
