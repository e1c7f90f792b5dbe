import CAllocationCounter
@testable import MediaEngine
import Datagrams
import OpusCodec
import Peering
import Playout
import RTP
import Realtime
import SecureTransport
import TestSupport
import Testing
import Timekeeping

/// Two worker loops on real sockets, run by hand on the test's own thread, so that each allocation of theirs counts.
@Suite("Allocations on the media path", .serialized)
struct AllocationTests {
    /// What libsrtp2 itself allocates for one packet, found by asking it alone.
    struct LibraryCost {
        let media: Int64
        let control: Int64
    }

    @Test(
        "10,000 frames of live calls allocate what libsrtp2 itself does, and not once more",
        arguments: SRTPSuite.allCases)
    func steadyState(suite: SRTPSuite) throws {
        let (callCount, frames) = (20, 250)
        let cost = try libraryCost(suite)
        var caller = try HandDrivenWorker()
        var device = try HandDrivenWorker()
        for number in 1...UInt32(callCount) {
            var generator = SeededGenerator(seed: UInt64(number))
            let (there, back) = (
                SRTPKey.random(suite, using: &generator), SRTPKey.random(suite, using: &generator)
            )
            try caller.add(
                number: number, to: device.address, local: number * 2, remote: number * 2 + 1, send: there,
                receive: back, audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
            try device.add(
                number: number, to: caller.address, local: number * 2 + 1, remote: number * 2, send: back,
                receive: there, audio: AudioBehaviour(source: .echo))
        }
        // Warm-up: libopus and libsrtp2 may set themselves up with the first packets.
        run(&caller, &device, forFrames: 50 * callCount)
        let before = Snapshot(caller, device)
        // Among the frames are keys, which take the place of sound; and one side sends each frame twice.
        try caller.press(code: 5)
        device.repeatFrames()
        run(&caller, &device, forFrames: frames * callCount)
        let spent = Snapshot(caller, device).since(before)

        let totals = device.totals()
        #expect(totals.digits == callCount)
        #expect(totals.feedback > 10 * callCount)
        #expect(spent.frames >= Int64(2 * callCount * frames))
        // Most frames are packets, sent and received; a machine that stalls may drop some on the way.
        #expect(spent.mediaPackets >= Int64(3 * callCount * frames))
        #expect(spent.allocations == spent.mediaPackets * cost.media + spent.controlPackets * cost.control)
    }

    /// Runs both loops in turn, in real time, until each has run that many more frames over all of its calls.
    ///
    /// Counted from where the loops are: after a stall they catch up several frames in one step.
    private func run(_ caller: inout HandDrivenWorker, _ device: inout HandDrivenWorker, forFrames frames: Int) {
        let (callerEnd, deviceEnd) = (caller.totals().frames + frames, device.totals().frames + frames)
        while caller.totals().frames < callerEnd || device.totals().frames < deviceEnd {
            caller.step()
            device.step()
        }
    }

    func libraryCost(_ suite: SRTPSuite) throws -> LibraryCost {
        var generator = SeededGenerator(seed: 1)
        let key = SRTPKey.random(suite, using: &generator)
        var outbound = try SRTPContext(key, .outbound)
        var inbound = try SRTPContext(key, .inbound)
        var media: Int64 = 0
        var control: Int64 = 0
        for sequence in UInt8(0)..<20 {
            media = try allocations(of: [0x80, 111, 0, sequence, 0, 0, 0, 0, 0, 0, 0, 9]) { packet in
                let length = try #require(outbound.protect(&packet, length: 92))
                packet = packet._consumingExtracting(..<length)
                _ = try inbound.unprotect(&packet)
            }
            control = try allocations(of: [0x80, 201, 0, 1, 0, 0, 0, 9]) { packet in
                let length = try #require(outbound.protectControl(&packet, length: 92))
                packet = packet._consumingExtracting(..<length)
                _ = try inbound.unprotectControl(&packet)
            }
        }
        return LibraryCost(media: media / 2, control: control / 2)
    }

    private func allocations(
        of head: [UInt8], _ body: (inout MutableRawSpan) throws -> Void
    ) throws -> Int64 {
        var bytes = head + Array(repeating: 0, count: 200)
        var elements = bytes.mutableSpan
        var packet = elements.mutableBytes
        let before = handset_test_allocations()
        try body(&packet)
        return handset_test_allocations() - before
    }

    /// Counts at one moment between two steps.
    private struct Snapshot {
        var allocations: Int64
        var frames: Int64
        var mediaPackets: Int64
        var controlPackets: Int64

        init(_ caller: borrowing HandDrivenWorker, _ device: borrowing HandDrivenWorker) {
            allocations = handset_test_allocations()
            let (one, other) = (caller.totals(), device.totals())
            frames = Int64(one.frames + other.frames)
            mediaPackets = Int64(one.media + other.media)
            controlPackets = Int64(one.control + other.control)
        }

        func since(_ earlier: Snapshot) -> Snapshot {
            var difference = self
            difference.allocations -= earlier.allocations
            difference.frames -= earlier.frames
            difference.mediaPackets -= earlier.mediaPackets
            difference.controlPackets -= earlier.controlPackets
            return difference
        }
    }
}

/// A worker's loop without its thread.
struct HandDrivenWorker: ~Copyable {
    let address: SocketAddress
    private var loop: WorkerLoop
    private var commands: SPSCRing<WorkerCommand>.Producer
    private var events: SPSCRing<WorkerEvent>.Consumer
    private var forwarded: SPSCRing<ForwardedDatagram>.Consumer
    private let wakeup: Wakeup
    private let signal: Wakeup
    private let socket: UnsafeMutablePointer<UDPSocket>
    private let calls: UnsafeMutablePointer<UnsafeMutablePointer<MediaCall>>
    private var count = 0

    struct Totals {
        var frames = 0
        var media = 0
        var control = 0
        var digits = 0
        var feedback = 0
    }

    /// - Parameter desk: The sound card's, if calls are to have one.
    init(desk: UnsafeMutablePointer<SoundDesk>? = nil) throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        var sockets = try SocketSet()
        let socket = UnsafeMutablePointer<UDPSocket>.allocate(capacity: 1)
        socket.initialize(to: try UDPSocket(boundTo: loopback))
        sockets.insert(socket, at: SocketSet.mainSlot(isIPv6: false))
        let timer = try DeadlineTimer()
        let wakeup = try Wakeup()
        let signal = try Wakeup()
        let commandRing = SPSCRing<WorkerCommand>(capacity: 256)
        let eventRing = SPSCRing<WorkerEvent>(capacity: 1_024)
        let forwardedRing = SPSCRing<ForwardedDatagram>(capacity: 16)
        address = socket.pointee.localAddress
        self.socket = socket
        let ends = WorkerLoop.Ends(
            sockets: sockets, timer: timer, wakeup: wakeup.handle, eventSignal: signal.handle,
            connectionSignal: signal.handle, forwarded: forwardedRing.producer, commands: commandRing.consumer,
            events: eventRing.producer)
        loop = WorkerLoop(ends, callLimit: 256, desk: desk)
        forwarded = forwardedRing.consumer
        self.wakeup = wakeup
        self.signal = signal
        commands = commandRing.producer
        events = eventRing.consumer
        calls = .allocate(capacity: 256)
    }

    deinit {
        for index in 0..<count {
            calls[index].deinitialize(count: 1)
            calls[index].deallocate()
        }
        calls.deallocate()
        socket.deinitialize(count: 1)
        socket.deallocate()
    }

    mutating func add(
        number: UInt32, to remote: SocketAddress, local: UInt32, remote remoteSSRC: UInt32, send: SRTPKey,
        receive: SRTPKey, audio: AudioBehaviour
    ) throws {
        var peer = PeerPlan(
            transport: .direct(to: remote), protection: .keys(send: send, receive: receive), remoteSSRC: remoteSSRC,
            localSSRC: local, canonicalName: "test@handset", sendPayloadType: 111, receivePayloadType: 111,
            randomSeed: UInt64(local))
        peer.telephoneEvents = [
            TelephoneEventFormat(clockRate: 48_000, sendPayloadType: 126, receivePayloadType: 126)
        ]
        peer.redundancy = RedundancyFormat(sendPayloadType: 63, receivePayloadType: 63)
        peer.headerExtensions.midIdentifier = 4
        peer.headerExtensions.mid = "0"
        peer.headerExtensions.audioLevelIdentifier = 1
        peer.headerExtensions.transportSequenceIdentifier = 3
        peer.headerExtensions.remoteTransportSequenceIdentifier = 3
        let plan = MediaCallPlan(
            peer: peer, encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: audio, start: .atOnce)
        let call = try MediaCall.make(
            id: MediaCallID(rawValue: UInt64(number)), plan: plan, files: CallFiles(), at: MonotonicClock.now)
        calls[count] = call
        count += 1
        let taken = commands.push(.add(call))
        try #require(taken)
    }

    /// Lets each packet of each call carry the frame before it, too.
    func repeatFrames() {
        for index in 0..<count { calls[index].pointee.redundancy.depth = 1 }
    }

    /// Presses a key in each call.
    mutating func press(code: UInt8) throws {
        for index in 0..<count {
            let taken = commands.push(.press(calls[index].pointee.id, code: code))
            try #require(taken)
        }
    }

    /// Gives the desk an order.
    mutating func order(_ order: SoundOrder) throws {
        let taken = commands.push(.sound(order))
        try #require(taken)
    }

    func call(_ index: Int) -> UnsafeMutablePointer<MediaCall> { calls[index] }

    mutating func step() { loop.step(at: MonotonicClock.now) }

    func totals() -> Totals {
        var totals = Totals()
        for index in 0..<count {
            let report = calls[index].pointee.report()
            totals.frames += report.call.framesRun
            totals.feedback += report.peer.feedback.sent
            totals.digits += report.call.digitsReceived
            totals.media += report.peer.packetsSent + report.peer.packetsReceived
            totals.control += report.peer.controlPacketsSent + report.peer.controlPacketsReceived
        }
        return totals
    }
}
