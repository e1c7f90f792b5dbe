public import AudioPort
public import Realtime

/// The control side's end of a mixer: makes and frees what the mixer uses. One thread at a time uses it.
public struct MeetingDesk: ~Copyable, Sendable {
    /// What has happened to a member.
    public enum Report: Equatable, Sendable {
        /// Its first sound has come.
        case present(UInt64)
        /// It is heard by the others, or no longer.
        case heard(UInt64, Bool)
        /// Its call has ended.
        case gone(UInt64)
        /// The recording of this number gets no more.
        case recorded(UInt64)
    }

    private var commands: SPSCRing<MixCommand>.Producer
    private var events: SPSCRing<MixEvent>.Consumer
    /// What found the ring full, in order.
    private var waiting: [MixCommand] = []

    /// Commands and events that may wait in a ring. Further commands wait here; a further event is reported with a later frame.
    static let capacity = 1_024

    /// Makes a mixer and the end that controls it.
    public static func pair() -> MeetingPair {
        let commands = SPSCRing<MixCommand>(capacity: capacity)
        let events = SPSCRing<MixEvent>(capacity: capacity)
        return MeetingPair(
            mixer: MeetingMixer(commands: commands.consumer, events: events.producer),
            desk: MeetingDesk(commands: commands.producer, events: events.consumer))
    }

    init(commands: consuming SPSCRing<MixCommand>.Producer, events: consuming SPSCRing<MixEvent>.Consumer) {
        self.commands = commands
        self.events = events
    }

    /// Opens a meeting, by a number that no other one has.
    public mutating func open(_ meeting: UInt64) { send(.open(HandedValue(MeetingMix(meeting)))) }

    /// Closes a meeting, and unseats its members.
    public mutating func close(_ meeting: UInt64) { send(.close(meeting)) }

    /// Seats a member in an open meeting.
    ///
    /// - Parameter member: Its number, which no other member of the mixer has; not 0.
    /// - Returns: The media worker's side of its sound.
    public mutating func seat(_ member: UInt64, in meeting: UInt64, isMuted: Bool) -> PortLine {
        let pair = MixPort.pair()
        send(.seat(HandedValue(MeetingSeat(member, in: meeting, port: pair.port, isMuted: isMuted))))
        return pair.line
    }

    /// Removes a member from the mix.
    public mutating func unseat(_ member: UInt64, from meeting: UInt64) { send(.unseat(member, meeting: meeting)) }

    /// Mutes a member, or has it heard again.
    public mutating func mute(_ member: UInt64, in meeting: UInt64, _ isMuted: Bool) {
        send(.mute(member, meeting: meeting, isMuted))
    }

    /// Has all members hear a tone.
    public mutating func sound(_ tone: MeetingTone, in meeting: UInt64) { send(.tone(meeting: meeting, tone)) }

    /// Records the mix of a meeting from now on, until ``stopRecording(of:)`` or its end; a recording that there is ends.
    ///
    /// - Parameter recording: A number that no other recording has; ``Report/recorded(_:)`` has it.
    public mutating func record(
        _ meeting: UInt64, as recording: UInt64, into ring: consuming AudioRing.Producer
    ) { send(.record(HandedValue(MeetingRecorder(recording, of: meeting, into: ring)))) }

    /// Ends the recording of a meeting, if there is one.
    public mutating func stopRecording(of meeting: UInt64) { send(.stopRecording(meeting)) }

    private mutating func send(_ command: MixCommand) {
        waiting.append(command)
        flush()
    }

    private mutating func flush() {
        var sent = 0
        while sent < waiting.count, commands.push(waiting[sent]) { sent += 1 }
        waiting.removeFirst(sent)
    }

    /// Takes what has happened since this was last asked, and frees what the mixer has handed back.
    public mutating func takeReports(into reports: inout [Report]) {
        flush()
        while let event = events.pop() {
            switch event {
            case .present(let member): reports.append(.present(member))
            case .heard(let member, let isHeard): reports.append(.heard(member, isHeard))
            case .gone(let member): reports.append(.gone(member))
            case .freeSeat(let seat): seat.free()
            case .freeMix(let mix): mix.free()
            case .freeRecorder(let recorder):
                recorder.value.ring.close()
                reports.append(.recorded(recorder.value.number))
                recorder.free()
            case .wantsEncoder(let settings, let meeting):
                // Without memory for one, each member encodes for itself, as before.
                guard let encoder = try? MeetingEncoder(settings, for: meeting) else { continue }
                send(.encoder(HandedValue(encoder)))
            case .freeEncoder(let encoder): encoder.free()
            }
        }
    }
}

/// A mixer, and the end that controls it.
@frozen
public struct MeetingPair: ~Copyable {
    /// For the thread that mixes.
    public var mixer: MeetingMixer
    /// For the control side.
    public var desk: MeetingDesk

    init(mixer: consuming MeetingMixer, desk: consuming MeetingDesk) {
        self.mixer = mixer
        self.desk = desk
    }
}
