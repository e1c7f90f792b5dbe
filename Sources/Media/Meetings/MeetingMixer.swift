internal import AudioKit
public import AudioPort
internal import Realtime

/// A member's place in a mix: its port, and its frame of the present tick.
public struct MeetingSeat: ~Copyable, Sendable {
    /// The member, unlike any other of the mixer; not 0.
    public let member: UInt64
    let meeting: UInt64
    var port: MixPort
    var frame = SampleBuffer(capacity: MixPort.frameSamples)
    var limiter = MixLimiter()
    var level = SpeechLevel()
    var isMuted: Bool
    /// Whether sound of the call has come.
    var isPresent = false
    /// In the last frame, and in this one.
    var (wasHeard, isHeard) = (false, false)
    /// How the call sends what it hears, and how many independent frames it was offered since it can send one.
    private(set) var sharing = FrameSharing.alone
    private var offers = 0
    /// What was last reported.
    var (reportedPresent, reportedHeard, reportedGone) = (false, false, false)
    var next: HandedValue<MeetingSeat>?

    /// Makes a seat.
    public init(_ member: UInt64, in meeting: UInt64, port: consuming MixPort, isMuted: Bool) {
        self.member = member
        self.meeting = meeting
        self.port = port
        self.isMuted = isMuted
    }

    /// Whether the frame is part of the mix.
    var contributes: Bool { @_noAllocation @_noLocks get { wasHeard || isHeard } }

    /// Learns how the call sends.
    @_noAllocation @_noLocks
    mutating func noteSharing() {
        guard port.sharing != sharing else { return }
        sharing = port.sharing
        offers = 0
    }

    /// Whether the call waits for an independent frame of these settings. One that takes none of five is waited for no longer.
    @_noAllocation @_noLocks
    func awaits(_ settings: EncoderSettings) -> Bool {
        isPresent && !contributes && offers < 5 && sharing == .ready(settings)
    }

    /// The call is given a frame of its settings.
    @_noAllocation @_noLocks
    mutating func note(_ frame: SharedFrame) { if frame.isIndependent, awaits(frame.settings) { offers &+= 1 } }
}

/// Where the mix of a meeting is recorded to.
struct MeetingRecorder: ~Copyable, Sendable {
    /// The recording, unlike any other of the mixer.
    let number: UInt64
    let meeting: UInt64
    var ring: AudioRing.Producer
    var next: HandedValue<MeetingRecorder>?

    init(_ number: UInt64, of meeting: UInt64, into ring: consuming AudioRing.Producer) {
        self.number = number
        self.meeting = meeting
        self.ring = ring
    }
}

/// The mix of one meeting.
public struct MeetingMix: ~Copyable, Sendable {
    /// The meeting, unlike any other of the mixer.
    public let meeting: UInt64
    var seats: HandedValue<MeetingSeat>?
    var recorder: HandedValue<MeetingRecorder>?
    var encoders: HandedValue<MeetingEncoder>?
    /// The control side was asked for an encoder, and has not made it.
    var awaitsEncoder = false
    /// The seat whose settings are looked at next, in case they are worth an encoder.
    var lookedAt = 0
    var mixer = CallMixer()
    var selection = SpeakerSelection()
    var common = SampleBuffer(capacity: MixPort.frameSamples)
    var own = SampleBuffer(capacity: MixPort.frameSamples)
    var work = SampleBuffer(capacity: MixPort.frameSamples)
    let entry = ToneGenerator(frequencyHz: 880, levelDBFS: -24)
    let exit = ToneGenerator(frequencyHz: 440, levelDBFS: -24)
    var tone = ToneGenerator(frequencyHz: 440, levelDBFS: -24)
    /// Frames of the tone that are left.
    var toneFrames = 0
    var next: HandedValue<MeetingMix>?

    /// Makes the mix of no members.
    public init(_ meeting: UInt64) { self.meeting = meeting }
}

/// A tone that all members hear.
public enum MeetingTone: BitwiseCopyable, Sendable {
    /// A member has joined: 880 Hz.
    case entry
    /// A member has left: 440 Hz.
    case exit
}

/// Mixes the calls of all meetings of a process, on one thread. Each member gets the mix of those who speak, without its own voice.
///
/// Its commands and events cross by rings, and what they carry is made and freed on the control side (``MeetingDesk``), so that
/// ``tick()`` neither allocates, frees nor locks.
public struct MeetingMixer: ~Copyable, Sendable {
    private var commands: SPSCRing<MixCommand>.Consumer
    private var events: SPSCRing<MixEvent>.Producer
    private var mixes: HandedValue<MeetingMix>?
    /// What could not be handed back yet.
    private var idleSeats: HandedValue<MeetingSeat>?
    private var idleMixes: HandedValue<MeetingMix>?
    private var idleRecorders: HandedValue<MeetingRecorder>?
    private var idleEncoders: HandedValue<MeetingEncoder>?
    private var hasReported = false
    /// Encoders that there are, or that were asked for.
    private var encoders = 0

    init(commands: consuming SPSCRing<MixCommand>.Consumer, events: consuming SPSCRing<MixEvent>.Producer) {
        self.commands = commands
        self.events = events
    }

    /// Whether there is no meeting, and nothing to hand back.
    public var isIdle: Bool {
        @_noAllocation @_noLocks get {
            if case .some = mixes { return false }
            if case .some = idleSeats { return false }
            if case .some = idleMixes { return false }
            if case .some = idleRecorders { return false }
            if case .some = idleEncoders { return false }
            return true
        }
    }

    /// Mixes one frame of each meeting: 20 ms.
    ///
    /// - Returns: Whether there are events for the control side.
    @_noAllocation @_noLocks
    public mutating func tick() -> Bool {
        hasReported = false
        while let command = commands.pop() { carryOut(command) }
        var mix = mixes
        while let here = mix {
            run(here)
            mix = here.value.next
        }
        handBack()
        return hasReported
    }

    @_noAllocation @_noLocks
    private mutating func report(_ event: MixEvent) -> Bool {
        guard events.push(event) else { return false }
        hasReported = true
        return true
    }

    // MARK: Commands

    @_noAllocation @_noLocks
    private mutating func carryOut(_ command: MixCommand) {
        switch command {
        case .open(let mix):
            mix.value.next = mixes
            mixes = mix
        case .close(let meeting): close(meeting)
        case .seat(let seat):
            guard let mix = find(seat.value.meeting) else { return retire(seat) }
            seat.value.next = mix.value.seats
            mix.value.seats = seat
        case .unseat(let member, let meeting): if let mix = find(meeting) { unseat(member, from: mix) }
        case .mute(let member, let meeting, let isMuted):
            var seat = find(meeting)?.value.seats
            while let here = seat {
                if here.value.member == member { here.value.isMuted = isMuted }
                seat = here.value.next
            }
        case .tone(let meeting, let tone): if let mix = find(meeting) { Self.begin(tone, in: mix) }
        case .record(let recorder):
            guard let mix = find(recorder.value.meeting) else { return retire(recorder) }
            stopRecording(mix)
            mix.value.recorder = recorder
        case .stopRecording(let meeting): if let mix = find(meeting) { stopRecording(mix) }
        case .encoder(let encoder):
            guard let mix = find(encoder.value.meeting) else { return retire(encoder) }
            mix.value.awaitsEncoder = false
            encoder.value.next = mix.value.encoders
            mix.value.encoders = encoder
        }
    }

    @_noAllocation @_noLocks
    private mutating func retire(_ encoder: HandedValue<MeetingEncoder>) {
        encoders &-= 1
        encoder.value.next = idleEncoders
        idleEncoders = encoder
    }

    @_noAllocation @_noLocks
    private mutating func stopRecording(_ mix: HandedValue<MeetingMix>) {
        guard let recorder = mix.value.recorder else { return }
        mix.value.recorder = nil
        retire(recorder)
    }

    @_noAllocation @_noLocks
    private mutating func retire(_ recorder: HandedValue<MeetingRecorder>) {
        recorder.value.next = idleRecorders
        idleRecorders = recorder
    }

    @_noAllocation @_noLocks
    private static func begin(_ tone: MeetingTone, in mix: HandedValue<MeetingMix>) {
        switch tone {
        case .entry: mix.value.tone = mix.value.entry
        case .exit: mix.value.tone = mix.value.exit
        }
        mix.value.toneFrames = toneLength
    }

    /// Frames of a tone: 0.2 s.
    private static var toneLength: Int { @_noAllocation @_noLocks get { 10 } }

    @_noAllocation @_noLocks
    private func find(_ meeting: UInt64) -> HandedValue<MeetingMix>? {
        var mix = mixes
        while let here = mix {
            if here.value.meeting == meeting { return here }
            mix = here.value.next
        }
        return nil
    }

    @_noAllocation @_noLocks
    private mutating func close(_ meeting: UInt64) {
        guard let mix = find(meeting) else { return }
        stopRecording(mix)
        while let encoder = mix.value.encoders {
            mix.value.encoders = encoder.value.next
            retire(encoder)
        }
        while let seat = mix.value.seats {
            mix.value.seats = seat.value.next
            retire(seat)
        }
        if let first = mixes, first.isSame(as: mix) {
            mixes = mix.value.next
        } else {
            var before = mixes
            while let here = before {
                if let next = here.value.next, next.isSame(as: mix) { here.value.next = mix.value.next }
                before = here.value.next
            }
        }
        mix.value.next = idleMixes
        idleMixes = mix
    }

    @_noAllocation @_noLocks
    private mutating func unseat(_ member: UInt64, from mix: HandedValue<MeetingMix>) {
        var before: HandedValue<MeetingSeat>?
        var seat = mix.value.seats
        while let here = seat {
            let next = here.value.next
            guard here.value.member == member else {
                (before, seat) = (here, next)
                continue
            }
            if let before { before.value.next = next } else { mix.value.seats = next }
            return retire(here)
        }
    }

    @_noAllocation @_noLocks
    private mutating func retire(_ seat: HandedValue<MeetingSeat>) {
        seat.value.next = idleSeats
        idleSeats = seat
    }

    @_noAllocation @_noLocks
    private mutating func handBack() {
        while let seat = idleSeats {
            let next = seat.value.next
            guard report(.freeSeat(seat)) else { return }
            idleSeats = next
        }
        while let mix = idleMixes {
            let next = mix.value.next
            guard report(.freeMix(mix)) else { return }
            idleMixes = next
        }
        while let recorder = idleRecorders {
            let next = recorder.value.next
            guard report(.freeRecorder(recorder)) else { return }
            idleRecorders = next
        }
        while let encoder = idleEncoders {
            let next = encoder.value.next
            guard report(.freeEncoder(encoder)) else { return }
            idleEncoders = next
        }
    }

    // MARK: A frame

    @_noAllocation @_noLocks
    private mutating func run(_ mix: HandedValue<MeetingMix>) {
        mix.value.selection.begin()
        var seat = mix.value.seats
        while let here = seat {
            hear(here)
            if !here.value.isMuted {
                mix.value.selection.consider(here.value.member, level: here.value.level.value)
            }
            seat = here.value.next
        }
        mix.value.selection.end()
        mix.value.mixer.begin(samples: MixPort.frameSamples)
        seat = mix.value.seats
        while let here = seat {
            here.value.wasHeard = here.value.isHeard
            here.value.isHeard = mix.value.selection.isHeard(here.value.member)
            if here.value.contributes { Self.contribute(here, to: mix) }
            seat = here.value.next
        }
        if mix.value.toneFrames > 0 { Self.sound(mix) }
        Self.mixAll(mix)
        if let recorder = mix.value.recorder { Self.record(mix, into: recorder) }
        runEncoders(of: mix)
        lookForSettings(in: mix)
        seat = mix.value.seats
        while let here = seat {
            // What a call got before it reads would be late by then.
            if here.value.isPresent { Self.give(here, mix) }
            noteChanges(here)
            seat = here.value.next
        }
    }

    @_noAllocation @_noLocks
    private mutating func hear(_ seat: HandedValue<MeetingSeat>) {
        if Self.take(seat) > 0 { seat.value.isPresent = true }
    }

    @_noAllocation @_noLocks
    private mutating func noteChanges(_ seat: HandedValue<MeetingSeat>) {
        let member = seat.value.member
        if seat.value.isPresent != seat.value.reportedPresent, report(.present(member)) {
            seat.value.reportedPresent = true
        }
        if seat.value.isHeard != seat.value.reportedHeard, report(.heard(member, seat.value.isHeard)) {
            seat.value.reportedHeard = seat.value.isHeard
        }
        if !seat.value.reportedGone, seat.value.port.isOver, report(.gone(member)) { seat.value.reportedGone = true }
    }

    // MARK: What is encoded for several members

    @_noAllocation @_noLocks
    private mutating func runEncoders(of mix: HandedValue<MeetingMix>) {
        var before: HandedValue<MeetingEncoder>?
        var encoder = mix.value.encoders
        while let here = encoder {
            let next = here.value.next
            var (members, isAwaited) = (0, false)
            var seat = mix.value.seats
            while let member = seat {
                if member.value.sharing.settings == here.value.settings { members &+= 1 }
                if member.value.awaits(here.value.settings) { isAwaited = true }
                seat = member.value.next
            }
            if here.value.isSpare(members: members) {
                if let before { before.value.next = next } else { mix.value.encoders = next }
                retire(here)
            } else {
                if members > 0 { Self.encode(mix, with: here, isAwaited: isAwaited) } else { here.value.rest() }
                before = here
            }
            encoder = next
        }
    }

    /// Looks at one seat in each frame: if enough members encode as that one does, an encoder for them is worthwhile.
    @_noAllocation @_noLocks
    private mutating func lookForSettings(in mix: HandedValue<MeetingMix>) {
        guard !mix.value.awaitsEncoder else { return }
        var (index, seat) = (0, mix.value.seats)
        while let here = seat, index < mix.value.lookedAt { (index, seat) = (index &+ 1, here.value.next) }
        mix.value.lookedAt &+= 1
        guard let here = seat else { return mix.value.lookedAt = 0 }
        guard let settings = here.value.sharing.settings, !Self.hasEncoder(mix, for: settings) else { return }
        var members = 0
        seat = mix.value.seats
        while let member = seat {
            if member.value.sharing.settings == settings { members &+= 1 }
            seat = member.value.next
        }
        guard members >= MeetingEncoder.leastMembers, encoders < MeetingEncoder.mostInAll,
            report(.wantsEncoder(settings, meeting: mix.value.meeting))
        else { return }
        mix.value.awaitsEncoder = true
        encoders &+= 1
    }

    /// Whether there is an encoder for these settings, or for as many as a meeting may have.
    @_noAllocation @_noLocks
    private static func hasEncoder(_ mix: HandedValue<MeetingMix>, for settings: EncoderSettings) -> Bool {
        var (count, encoder) = (0, mix.value.encoders)
        while let here = encoder {
            if here.value.settings == settings { return true }
            (count, encoder) = (count &+ 1, here.value.next)
        }
        return count >= MeetingEncoder.most
    }

    /// The frame of this tick that a listener can send as it is.
    @_noAllocation @_noLocks
    private static func frame(_ mix: HandedValue<MeetingMix>, for seat: HandedValue<MeetingSeat>) -> SharedFrame? {
        guard let settings = seat.value.sharing.settings else { return nil }
        var encoder = mix.value.encoders
        while let here = encoder {
            if here.value.settings == settings { return here.value.frame }
            encoder = here.value.next
        }
        return nil
    }

    // What follows hands out views of samples, which unoptimised code counts as reference counting. It is not analysed; what it
    // calls is.

    @_semantics("no_performance_analysis") @inline(__always)
    private static func encode(
        _ mix: HandedValue<MeetingMix>, with encoder: HandedValue<MeetingEncoder>, isAwaited: Bool
    ) { encoder.value.encode(mix.value.common.samples(MixPort.frameSamples), isAwaited: isAwaited) }

    @_semantics("no_performance_analysis") @inline(__always)
    private static func take(_ seat: HandedValue<MeetingSeat>) -> Int {
        var frame = seat.value.frame.mutableSamples(MixPort.frameSamples)
        let count = seat.value.port.take(into: &frame)
        seat.value.level.add(frame.span)
        seat.value.noteSharing()
        return count
    }

    /// Adds a member's frame, which rises or falls where the member begins or ends to be heard.
    @_semantics("no_performance_analysis") @inline(__always)
    private static func contribute(_ seat: HandedValue<MeetingSeat>, to mix: HandedValue<MeetingMix>) {
        var frame = seat.value.frame.mutableSamples(MixPort.frameSamples)
        let (from, to) = (seat.value.wasHeard ? 1 : 0, seat.value.isHeard ? 1 : 0)
        if from != to {
            for index in 0..<frame.count {
                let rising = to == 1 ? index : frame.count - 1 - index
                frame[index] = Int16(truncatingIfNeeded: Int(frame[index]) * rising / frame.count)
            }
        }
        mix.value.mixer.add(frame.span)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    private static func sound(_ mix: HandedValue<MeetingMix>) {
        var samples = mix.value.work.mutableSamples(MixPort.frameSamples)
        mix.value.tone.fill(&samples)
        let isFirst = mix.value.toneFrames == toneLength
        let isLast = mix.value.toneFrames == 1
        if isFirst || isLast {
            for index in 0..<samples.count {
                let rising = isFirst ? index : samples.count - 1 - index
                samples[index] = Int16(truncatingIfNeeded: Int(samples[index]) * rising / samples.count)
            }
        }
        mix.value.mixer.add(samples.span)
        mix.value.toneFrames -= 1
    }

    @_semantics("no_performance_analysis") @inline(__always)
    private static func mixAll(_ mix: HandedValue<MeetingMix>) {
        var common = mix.value.common.mutableSamples(MixPort.frameSamples)
        mix.value.mixer.mix(into: &common)
    }

    @_semantics("no_performance_analysis") @inline(__always)
    private static func record(_ mix: HandedValue<MeetingMix>, into recorder: HandedValue<MeetingRecorder>) {
        let taken = recorder.value.ring.write(mix.value.common.samples(MixPort.frameSamples))
        // The disk was slow, and the recording lacks it.
        if taken < MixPort.frameSamples { recorder.value.ring.noteRefused(MixPort.frameSamples - taken) }
    }

    @_semantics("no_performance_analysis") @inline(__always)
    private static func give(_ seat: HandedValue<MeetingSeat>, _ mix: HandedValue<MeetingMix>) {
        guard seat.value.contributes else {
            let encoded = frame(mix, for: seat)
            if let encoded { seat.value.note(encoded) }
            return seat.value.port.give(
                mix.value.common.samples(MixPort.frameSamples), through: &mix.value.work, encoded: encoded)
        }
        var own = mix.value.own.mutableSamples(MixPort.frameSamples)
        mix.value.mixer.mix(
            without: seat.value.frame.samples(MixPort.frameSamples), into: &own, through: &seat.value.limiter)
        seat.value.port.give(own.span, through: &mix.value.work)
    }
}

/// Orders for the mixer.
enum MixCommand: BitwiseCopyable, Sendable {
    case open(HandedValue<MeetingMix>)
    case close(UInt64)
    case seat(HandedValue<MeetingSeat>)
    case unseat(UInt64, meeting: UInt64)
    case mute(UInt64, meeting: UInt64, Bool)
    case tone(meeting: UInt64, MeetingTone)
    case record(HandedValue<MeetingRecorder>)
    case stopRecording(UInt64)
    case encoder(HandedValue<MeetingEncoder>)
}

/// What the mixer reports.
enum MixEvent: BitwiseCopyable, Sendable {
    case present(UInt64)
    case heard(UInt64, Bool)
    case gone(UInt64)
    case freeSeat(HandedValue<MeetingSeat>)
    case freeMix(HandedValue<MeetingMix>)
    case freeRecorder(HandedValue<MeetingRecorder>)
    case wantsEncoder(EncoderSettings, meeting: UInt64)
    case freeEncoder(HandedValue<MeetingEncoder>)
}
