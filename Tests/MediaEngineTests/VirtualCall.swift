import AudioKit
import Playout
import RTP
import Realtime
import SecureTransport
import TestSupport
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

/// Both ends of one call, in virtual time, on a wire that only the test touches.
struct VirtualCall: ~Copyable {
    let left: UnsafeMutablePointer<MediaCall>
    let right: UnsafeMutablePointer<MediaCall>
    private(set) var now = Instant.zero
    /// What the two have been told last.
    private var plans: [MediaCallPlan] = []
    /// The share of media packets from left to right that is lost, 0…1.
    var loss = 0.0
    /// Reports and feedback arrive.
    var deliversControl = true
    /// How long datagrams take; nil: they arrive at once, and are dated 5 ms later.
    var travel: Duration?
    /// How much later each datagram from left to right arrives; asked for one after another.
    var jitter: () -> Duration = { .zero }
    /// And from right to left.
    var jitterBack: () -> Duration = { .zero }
    /// After so many media packets from left one of padding alone goes out in the next one's place, which it holds back
    /// by 8.5 ms: so Chromium probes a path. Needs `travel`.
    var mediaBetweenProbes: Int?
    private var (probes, mediaSinceProbe) = (UInt16(0), 0)
    /// A path of its own: when a datagram from left or from right arrives; nil: it is lost. Replaces `travel`, `jitter` and
    /// `loss`.
    var path: ((VirtualDatagram) -> Instant?)?
    /// What becomes of a datagram on the path, header and all; nil: nothing. Needs `path`.
    var rewrite: ((_ datagram: [UInt8], _ isFromLeft: Bool, _ isControl: Bool) -> [UInt8])?
    /// The two read their sockets as a worker does: with their frames, and between them only if they ask for that.
    var readsLikeWorker = false
    /// Times that either was looked after between its frames.
    private(set) var extraWakeups = 0
    /// What right has heard.
    private var heard: AudioRing.Consumer?
    /// How often the two are looked after.
    var turn = Duration.milliseconds(20)
    /// Datagrams on their way, with their destinations.
    private var underway: [(at: Instant, isToLeft: Bool, bytes: [UInt8])] = []
    /// Anything arrives.
    var isConnected = true
    /// Payload types of the packets that left has sent, lost ones included.
    private(set) var payloadTypes: [UInt8: Int] = [:]
    /// Of the same packets the first byte of the payload, which says how Opus is coded (RFC 6716 §3.1), if they have no header
    /// extension.
    private(set) var firstBytes: [UInt8] = []
    private var generator = SeededGenerator(seed: 7)
    private var scratch = FrameScratch()
    private var batch = DatagramBatch()

    /// - Parameter voice: What left says instead of `audio`; then what right hears is kept, see ``takeHeard()``.
    init(
        audio: AudioBehaviour = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)), voice: [Int16]? = nil,
        leftRings: consuming CallRings = CallRings(), rightRings: consuming CallRings = CallRings(),
        _ change: (inout MediaCallPlan) -> Void = { _ in }
    ) throws {
        var made: [UnsafeMutablePointer<MediaCall>] = []
        for number in UInt32(1)...2 {
            let remote = try #require(SocketAddress(host: "192.0.2.\(3 - number)", port: 5_000))
            var encoder = EncoderSettings()
            encoder.complexity = 0
            var plan = MediaCallPlan(
                peer: PeerPlan(
                    transport: .direct(to: remote), protection: .plain, remoteSSRC: nil, localSSRC: number,
                    canonicalName: "peer\(number)", sendPayloadType: 111, receivePayloadType: 111,
                    randomSeed: UInt64(number)),
                encoder: encoder, playout: PlayoutConfiguration(),
                audio: number == 1 ? audio : AudioBehaviour(source: .silence), start: .atOnce)
            if voice != nil, number == 1 { plan.audio = AudioBehaviour(source: .file(path: "", loops: false)) }
            change(&plan)
            plans.append(plan)
        }
        if let voice {
            var said = AudioRing(capacity: 1 << 22)
            _ = said.producer.write(voice.span)
            leftRings.player = .some(said.consumer)
            let kept = AudioRing(capacity: 1 << 22)
            rightRings.recorder = .some(kept.producer)
            heard = .some(kept.consumer)
        }
        made.append(try MediaCall.make(id: MediaCallID(rawValue: 1), plan: plans[0], rings: leftRings, at: .zero))
        made.append(try MediaCall.make(id: MediaCallID(rawValue: 2), plan: plans[1], rings: rightRings, at: .zero))
        (left, right) = (made[0], made[1])
    }

    /// What a call's plan may look like, for what needs one beside the two ends' own.
    static func anyPlan() throws -> MediaCallPlan {
        MediaCallPlan(
            peer: PeerPlan(
                transport: .direct(to: try #require(SocketAddress(host: "192.0.2.1", port: 5_000))), protection: .plain,
                remoteSSRC: nil, localSSRC: 1, canonicalName: "peer", sendPayloadType: 111, receivePayloadType: 111,
                randomSeed: 1),
            encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: AudioBehaviour(source: .silence),
            start: .atOnce)
    }

    deinit {
        for call in [left, right] {
            if let change = call.pointee.takeWaitingChange() { Self.free(change) }
            call.deinitialize(count: 1)
            call.deallocate()
        }
    }

    /// Lets one of the two go on in other formats.
    mutating func change(_ end: UnsafeMutablePointer<MediaCall>, _ edit: (inout MediaCallPlan) -> Void) throws {
        let index = end == left ? 0 : 1
        let before = plans[index].codec
        edit(&plans[index])
        let change = UnsafeMutablePointer<MediaCallChange>.allocate(capacity: 1)
        change.initialize(to: try MediaCallChange(to: plans[index], from: before))
        if let rest = end.pointee.change(change) { Self.free(rest) }
    }

    private static func free(_ change: UnsafeMutablePointer<MediaCallChange>) {
        change.deinitialize(count: 1)
        change.deallocate()
    }

    /// Lets time pass, turn by turn.
    mutating func run(seconds: Double) throws {
        let end = now.advanced(by: .seconds(seconds))
        while now < end {
            try lookAfter(left, to: right, isFromLeft: true)
            try lookAfter(right, to: left, isFromLeft: false)
            now = now.advanced(by: turn)
        }
    }

    private mutating func lookAfter(
        _ call: UnsafeMutablePointer<MediaCall>, to other: UnsafeMutablePointer<MediaCall>, isFromLeft: Bool
    ) throws {
        let isFrameDue = call.pointee.nextDeadline <= now
        if readsLikeWorker, !isFrameDue {
            let isDue = call.pointee.areRequestsDue(at: now)
            guard isDue || (call.pointee.isSettling && hasArrivals(isLeft: isFromLeft)) else { return }
            extraWakeups += 1
        }
        try receive(call, isLeft: isFromLeft)
        if let rest = call.pointee.takeUpChange() { Self.free(rest) }
        call.pointee.prepareFrames(at: now)
        running: while true {
            switch call.pointee.runFrame(at: now, scratch: &scratch, batch: &batch) {
            case .nothing: break running
            case .runAgain: continue
            case .chooseSlot: call.pointee.place(nextFrame: now.advanced(by: .milliseconds(20)))
            }
        }
        if call.pointee.isControlDue(at: now) {
            call.pointee.sendControl(at: now, wallNanoseconds: MonotonicClock.wallNanoseconds, into: &batch)
        }
        call.pointee.sendFeedbackIfDue(at: now, into: &batch)
        call.pointee.sendRequestsIfDue(at: now, into: &batch)
        let source = try #require(SocketAddress(host: isFromLeft ? "192.0.2.1" : "192.0.2.2", port: 5_000))
        for index in 0..<batch.count {
            let type = Self.type(of: index, in: &batch)
            let isControl = (192...223).contains(type)
            if isFromLeft, !isControl {
                payloadTypes[type & 0x7F, default: 0] += 1
                let bytes = Self.bytes(of: index, in: &batch)
                if bytes[0] & 0x10 == 0, bytes.count > 12 { firstBytes.append(bytes[12]) }
            }
            if let path {
                var datagram = Self.bytes(of: index, in: &batch)
                if let rewrite { datagram = rewrite(datagram, isFromLeft, isControl) }
                let arrival = path(
                    VirtualDatagram(
                        isFromLeft: isFromLeft, isControl: isControl, bytes: datagram.count, sentAt: now))
                guard isConnected, let arrival else { continue }
                underway.append((arrival, !isFromLeft, datagram))
                continue
            }
            let isLost = !isControl && isFromLeft && Double.random(in: 0..<1, using: &generator) < loss
            guard isConnected, !isLost, deliversControl || !isControl else { continue }
            if let travel {
                let arrival = now.advanced(by: travel + (isFromLeft ? jitter() : jitterBack()))
                let datagram = Self.bytes(of: index, in: &batch)
                if isFromLeft, !isControl, let mediaBetweenProbes {
                    sendProbed(datagram, every: mediaBetweenProbes, arrival)
                } else {
                    underway.append((arrival, !isFromLeft, datagram))
                }
            } else {
                Self.deliver(index, of: &batch, to: other, from: source, at: now.advanced(by: .milliseconds(5)))
            }
        }
        batch.clear()
    }

    /// Sends a media packet to right, with a probe before it if it is time.
    private mutating func sendProbed(_ datagram: [UInt8], every interval: Int, _ arrival: Instant) {
        var (datagram, arrival) = (datagram, arrival)
        if mediaSinceProbe >= interval {
            // The header with the padding bit, and four bytes of padding.
            let probe = [datagram[0] | 0x20] + datagram[1..<12] + [0, 0, 0, 4]
            underway.append((arrival, false, Self.renumbered(probe, by: probes)))
            arrival = arrival.advanced(by: .microseconds(8_500))
            probes += 1
            mediaSinceProbe = 0
        }
        mediaSinceProbe += 1
        datagram = Self.renumbered(datagram, by: probes)
        underway.append((arrival, false, datagram))
    }

    /// An RTP packet with a sequence number that is greater by `shift`.
    private static func renumbered(_ datagram: [UInt8], by shift: UInt16) -> [UInt8] {
        let sequence = (UInt16(datagram[2]) << 8 | UInt16(datagram[3])) &+ shift
        return datagram[..<2] + [UInt8(sequence >> 8), UInt8(sequence & 0xFF)] + datagram[4...]
    }

    /// Takes in what has arrived, as a worker does before its frames.
    private mutating func receive(_ call: UnsafeMutablePointer<MediaCall>, isLeft: Bool) throws {
        let source = try #require(SocketAddress(host: isLeft ? "192.0.2.2" : "192.0.2.1", port: 5_000))
        let arrived = underway.filter { $0.isToLeft == isLeft && $0.at <= now }.sorted { $0.at < $1.at }
        underway.removeAll { $0.isToLeft == isLeft && $0.at <= now }
        for datagram in arrived {
            var bytes = datagram.bytes
            var elements = bytes.mutableSpan
            var span = elements.mutableBytes
            let isControl = DatagramKind(of: datagram.bytes.span.bytes) == .rtcp
            _ = call.pointee.receive(
                &span, isControl: isControl, from: DatagramPath(to: source), arrival: datagram.at)
        }
        while call.pointee.sendRepair(at: now, into: &batch) {}
    }

    private func hasArrivals(isLeft: Bool) -> Bool { underway.contains { $0.isToLeft == isLeft && $0.at <= now } }

    /// What right has heard since this was last asked.
    mutating func takeHeard() -> [Int16] {
        var samples = [Int16](repeating: 0, count: 1 << 22)
        var span = samples.mutableSpan
        let count = heard?.read(into: &span) ?? 0
        return Array(samples.prefix(count))
    }

    private static func bytes(of index: Int, in batch: inout DatagramBatch) -> [UInt8] {
        let datagram = batch.bytes(index)
        var bytes: [UInt8] = []
        for offset in 0..<datagram.byteCount {
            bytes.append(datagram.bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
        }
        return bytes
    }

    private static func type(of index: Int, in batch: inout DatagramBatch) -> UInt8 {
        let datagram = batch.bytes(index)
        return datagram.bytes.unsafeLoad(fromByteOffset: 1, as: UInt8.self)
    }

    private static func deliver(
        _ index: Int, of batch: inout DatagramBatch, to call: UnsafeMutablePointer<MediaCall>,
        from source: SocketAddress, at arrival: Instant
    ) {
        var datagram = batch.bytes(index)
        let isControl = DatagramKind(of: datagram.bytes) == .rtcp
        _ = call.pointee.receive(&datagram, isControl: isControl, from: DatagramPath(to: source), arrival: arrival)
    }

    /// What the two ends have seen so far.
    var reports: (left: MediaReport, right: MediaReport) { (left.pointee.report(), right.pointee.report()) }
}

/// A datagram on the wire of a ``VirtualCall``.
struct VirtualDatagram {
    var isFromLeft: Bool
    /// RTCP.
    var isControl: Bool
    /// Without the headers of UDP and IP.
    var bytes: Int
    var sentAt: Instant
}

/// A path both ways for a ``VirtualCall``: seeded loss of media, a delay, and to the right a bottleneck with a queue.
final class VirtualPath {
    /// Loss of media to the right, and to the left.
    private var networks: [SimulatedNetwork]
    private let delay: Duration
    /// What the bottleneck carries, in bits per second, headers of UDP and IP included; nil: everything.
    var bottleneckBps: Int?
    /// What waits before it at most.
    var queue = Duration.milliseconds(200)
    private var isFreeAt = Instant.zero
    private(set) var (sent, lost) = (0, 0)

    init(_ loss: NetworkProfile.Loss, seed: UInt64, delay: Duration = .milliseconds(30)) {
        var profile = NetworkProfile()
        profile.loss = loss
        profile.baseDelayMilliseconds = 0
        networks = [SimulatedNetwork(profile, seed: seed), SimulatedNetwork(profile, seed: seed + 1_000)]
        self.delay = delay
    }

    func arrival(of datagram: VirtualDatagram) -> Instant? {
        if !datagram.isControl {
            sent += 1
            guard networks[datagram.isFromLeft ? 0 : 1].send(at: datagram.sentAt).arrival != nil else {
                lost += 1
                return nil
            }
        }
        guard datagram.isFromLeft, let bottleneckBps else { return datagram.sentAt.advanced(by: delay) }
        let start = max(isFreeAt, datagram.sentAt)
        guard datagram.sentAt.duration(to: start) <= queue else {
            lost += 1
            return nil
        }
        isFreeAt = start.advanced(by: .nanoseconds(Int64(datagram.bytes + 28) * 8_000_000_000 / Int64(bottleneckBps)))
        return isFreeAt.advanced(by: delay)
    }
}
