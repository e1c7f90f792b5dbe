import AudioPort
import CThreadCounters
import LoopbackAnalysis
import Core
import AudioKit
import Playout
import RTP
import Realtime
import SecureTransport
import TestSupport
import Testing
import VoiceActivity
@testable import CallMedia
@testable import MediaEngine

/// Two worker loops on real sockets, run by hand on the test's own thread, so that each allocation of theirs counts.
@Suite("Allocations on the media path", .serialized)
struct AllocationTests {
    @Test("10,000 frames of live calls allocate nothing and take no lock", arguments: SRTPSuite.allCases)
    func steadyState(suite: SRTPSuite) throws {
        let (callCount, frames) = (20, 250)
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
        caller.press(code: 5)
        device.repeatFrames()
        run(&caller, &device, forFrames: frames * callCount)
        let spent = Snapshot(caller, device).since(before)

        let totals = device.totals()
        #expect(totals.digits == callCount)
        #expect(totals.feedback > 10 * callCount)
        #expect(spent.frames >= Int64(2 * callCount * frames))
        // Most frames are packets, sent and received; a machine that stalls may drop some on the way.
        #expect(spent.mediaPackets >= Int64(3 * callCount * frames))
        #expect(spent.controlPackets > 0)
        #expect(spent.allocations == 0)
        #expect(spent.locks == 0)
    }

    @Test("A program's frames, its queue running dry and being cleared, and turns allocate nothing and take no lock")
    func program() throws {
        var caller = try HandDrivenWorker()
        var device = try HandDrivenWorker()
        var generator = SeededGenerator(seed: 1)
        let (there, back) = (
            SRTPKey.random(.aesCM128HMACSHA1, using: &generator), SRTPKey.random(.aesCM128HMACSHA1, using: &generator)
        )
        let pair = AudioPort.pair(
            rate: .hz48000, signal: try PortSignal(), queueCapacity: 1 << 18, turns: TurnPlan(interrupts: true))
        var port = pair.port
        try caller.add(
            number: 1, to: device.address, local: 2, remote: 3, send: there, receive: back,
            audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
        try device.add(
            number: 1, to: caller.address, local: 3, remote: 2, send: back, receive: there,
            audio: AudioBehaviour(source: .program), line: .some(pair.line))
        let words = [Int16](repeating: 1_000, count: 100_500)
        run(&caller, &device, forFrames: 50)
        var events: [PlaybackEvent] = []
        port.update(at: .zero, isFinal: true, into: &events)
        _ = port.write(words.span, at: .zero)
        run(&caller, &device, forFrames: 5)
        let before = Snapshot(caller, device)
        run(&caller, &device, forFrames: 20)
        let whilePlaying = Snapshot(caller, device).since(before)
        port.update(at: .zero, isFinal: true, into: &events)
        port.clear()
        _ = port.write(words.span.extracting(0..<1_500), at: .zero)
        let beforeClear = Snapshot(caller, device)
        run(&caller, &device, forFrames: 30)
        let whileCleared = Snapshot(caller, device).since(beforeClear)

        port.update(at: .zero, isFinal: true, into: &events)
        let played = port.played
        #expect(events.count == 1 && (20 * 960 + 1_500...60_000).contains(played))
        for spent in [whilePlaying, whileCleared] {
            #expect(spent.frames >= 40)
            #expect(spent.allocations == 0 && spent.locks == 0)
        }
    }

    @Test("Following who speaks in a call with a program allocates nothing and takes no lock")
    func turns() throws {
        var caller = try HandDrivenWorker()
        var device = try HandDrivenWorker()
        var generator = SeededGenerator(seed: 2)
        let (there, back) = (
            SRTPKey.random(.aesCM128HMACSHA1, using: &generator), SRTPKey.random(.aesCM128HMACSHA1, using: &generator)
        )
        let talker = AudioPort.pair(rate: .hz48000, signal: try PortSignal(), queueCapacity: 1 << 18)
        let bot = AudioPort.pair(
            rate: .hz48000, signal: try PortSignal(), queueCapacity: 1 << 18, turns: TurnPlan(interrupts: true))
        var mouth = talker.port
        var port = bot.port
        try caller.add(
            number: 1, to: device.address, local: 2, remote: 3, send: there, receive: back,
            audio: AudioBehaviour(source: .program), line: .some(talker.line))
        try device.add(
            number: 1, to: caller.address, local: 3, remote: 2, send: back, receive: there,
            audio: AudioBehaviour(source: .program), line: .some(bot.line))
        let words = (0..<240_000).map { Int16($0 % 97 < 48 ? 2_000 : -2_000) }
        run(&caller, &device, forFrames: 50)
        var speaker = SyntheticSpeech(seed: 31, levelDBFS: -24)
        let speech = speaker.samples(seconds: 2)
        _ = port.write(words.span, at: .zero)
        // 60 ms that lower it, half a second later the rest.
        let start = speech.firstIndex { abs(Int($0)) > 2_000 } ?? 0
        let said =
            Array(speech[start..<start + 2_880]) + [Int16](repeating: 0, count: 38_400) + Array(speech[start...])
        _ = mouth.write(said.span, at: .zero)
        let before = Snapshot(caller, device)
        run(&caller, &device, forFrames: 2 * 90)
        let spent = Snapshot(caller, device).since(before)
        var events: [PlaybackEvent] = []
        port.update(at: .zero, isFinal: true, into: &events)
        let summary = port.turns
        #expect(summary != nil)
        #expect(spent.frames >= 100)
        #expect(spent.allocations == 0 && spent.locks == 0)
    }

    @Test("Recording both sides, playing a file in mid-call and stopping both allocate nothing and take no lock")
    func recording() throws {
        var caller = try HandDrivenWorker()
        var device = try HandDrivenWorker()
        var generator = SeededGenerator(seed: 1)
        let (there, back) = (
            SRTPKey.random(.aesCM128HMACSHA1, using: &generator), SRTPKey.random(.aesCM128HMACSHA1, using: &generator)
        )
        try caller.add(
            number: 1, to: device.address, local: 2, remote: 3, send: there, receive: back,
            audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
        try device.add(
            number: 1, to: caller.address, local: 3, remote: 2, send: back, receive: there,
            audio: AudioBehaviour(source: .echo))
        let heard = AudioRing(capacity: 1 << 17)
        let sent = AudioRing(capacity: 1 << 17)
        let played = AudioRing(capacity: 1 << 14)
        let left = heard.consumer
        let right = sent.consumer
        var file = played.producer
        _ = file.write([Int16](repeating: 1_000, count: 9_600).span)
        file.close()
        var record = AudioChange(.recording, installs: true, recordsSent: true)
        record.recorder = .some(heard.producer)
        record.sentRecorder = .some(sent.producer)
        var announce = AudioChange(.announcement(number: 1), installs: true)
        announce.player = .some(played.consumer)
        let changes = UnsafeMutablePointer<AudioChange>.allocate(capacity: 4)
        (changes + 0).initialize(to: record)
        (changes + 1).initialize(to: announce)
        (changes + 2).initialize(to: AudioChange(.announcement(number: 1), installs: false))
        (changes + 3).initialize(to: AudioChange(.recording, installs: false))
        run(&caller, &device, forFrames: 50)
        let before = Snapshot(caller, device)
        for index in 0..<4 {
            device.change(changes + index)
            run(&caller, &device, forFrames: 20)
        }
        let spent = Snapshot(caller, device).since(before)
        #expect(left.count == right.count && left.count >= 50 * 960)
        #expect(spent.frames >= 150)
        #expect(spent.allocations == 0 && spent.locks == 0)
        changes.deinitialize(count: 4)
        changes.deallocate()
    }

    @Test("The structure of a call takes no more than 32 kB: what most calls do not use lies elsewhere")
    func size() {
        #expect(MemoryLayout<MediaCall>.size <= 32_768)
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

    /// Counts at one moment between two steps.
    private struct Snapshot {
        var allocations: Int64
        var locks: Int64
        var frames: Int64
        var mediaPackets: Int64
        var controlPackets: Int64

        init(_ caller: borrowing HandDrivenWorker, _ device: borrowing HandDrivenWorker) {
            allocations = handset_test_allocations()
            locks = handset_test_locks()
            let (one, other) = (caller.totals(), device.totals())
            frames = Int64(one.frames + other.frames)
            mediaPackets = Int64(one.media + other.media)
            controlPackets = Int64(one.control + other.control)
        }

        func since(_ earlier: Snapshot) -> Snapshot {
            var difference = self
            difference.allocations -= earlier.allocations
            difference.locks -= earlier.locks
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
    private let watcher: SocketWatcher
    private let calls: UnsafeMutablePointer<UnsafeMutablePointer<MediaCall>>
    private var count = 0

    struct Totals {
        var frames = 0
        var media = 0
        var control = 0
        var digits = 0
        var feedback = 0
    }

    /// - Parameter mixer: The sound card's, if calls are to have one.
    init(mixer: UnsafeMutablePointer<CardMixer>? = nil) throws {
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        var sockets = try SocketSet()
        let socket = UnsafeMutablePointer<UDPSocket>.allocate(capacity: 1)
        socket.initialize(to: try UDPSocket(boundTo: loopback))
        try sockets.add(socket, at: SocketSet.mainSlot(isIPv6: false))
        let watcher = try sockets.makeWatcher()
        let wakeup = try Wakeup()
        let signal = try Wakeup()
        let commandRing = SPSCRing<WorkerCommand>(capacity: 256)
        let eventRing = SPSCRing<WorkerEvent>(capacity: 1_024)
        let forwardedRing = SPSCRing<ForwardedDatagram>(capacity: 16)
        address = socket.pointee.localAddress
        self.socket = socket
        let ends = WorkerLoop.Ends(
            sockets: sockets, wakeup: wakeup.handle, eventSignal: signal.handle,
            connectionSignal: signal.handle, forwarded: forwardedRing.producer, commands: commandRing.consumer,
            events: eventRing.producer)
        loop = WorkerLoop(ends, callLimit: 256, mixer: mixer)
        forwarded = forwardedRing.consumer
        self.watcher = watcher
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
        receive: SRTPKey, audio: AudioBehaviour, line: consuming PortLine? = nil
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
        var rings = CallRings()
        rings.line = line
        let call = try MediaCall.make(
            id: MediaCallID(rawValue: UInt64(number)), plan: plan, rings: rings, at: MonotonicClock.now)
        calls[count] = call
        count += 1
        let taken = commands.push(.add(call))
        precondition(taken, "the ring has room")
    }

    /// Lets each packet of each call carry the frame before it, too.
    func repeatFrames() {
        for index in 0..<count { calls[index].pointee.repeatFrames(1) }
    }

    /// Presses a key in each call.
    mutating func press(code: UInt8) {
        for index in 0..<count {
            let taken = commands.push(.press(calls[index].pointee.id, code: code))
            precondition(taken, "the ring has room")
        }
    }

    /// Changes the audio of the first call.
    mutating func change(_ change: UnsafeMutablePointer<AudioChange>) {
        let taken = commands.push(.changeAudio(calls[0].pointee.id, change))
        precondition(taken, "the ring has room")
    }

    /// Gives the mixer an order.
    mutating func order(_ order: CardCommand) {
        let taken = commands.push(.sound(order))
        precondition(taken, "the ring has room")
    }

    func call(_ index: Int) -> UnsafeMutablePointer<MediaCall> { calls[index] }

    mutating func step() { loop.step(at: MonotonicClock.now) }

    /// Waits as its thread would, and does what there is.
    mutating func turn() { loop.turn() }

    /// What its thread is signalled with.
    var wakeupHandle: WakeupHandle { wakeup.handle }

    /// Gives it one more socket.
    mutating func add(_ socket: UnsafeMutablePointer<UDPSocket>, slot: Int) throws {
        try watcher.watch(socket.pointee, slot: slot)
        let taken = commands.push(.addSocket(socket, slot: slot))
        precondition(taken, "the ring has room")
    }

    /// Ends the loop, and tells what it counted.
    mutating func stop() -> WorkerCounters? {
        let taken = commands.push(.stop)
        precondition(taken, "the ring has room")
        step()
        var counters: WorkerCounters?
        while let event = events.pop() {
            if case .stopped(let final) = event { counters = final }
        }
        return counters
    }

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
