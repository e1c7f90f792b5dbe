public import AudioKit
internal import Realtime

/// A frame of a mix that is encoded once for all calls that hear it and encode alike.
public struct SharedFrame: BitwiseCopyable, Sendable {
    /// The longest frame that is shared, in bytes: 20 ms at 100 kb/s.
    public static var capacity: Int { @_noAllocation @_noLocks get { 256 } }
    /// Calls that send at higher rates encode for themselves: frames of a variable rate are up to 1.6 times as long as its mean.
    public static var highestBitrateBps: Int { @_noAllocation @_noLocks get { 64_000 } }

    /// How it is encoded.
    public let settings: EncoderSettings
    /// It refers to no frame before it, so a call that has encoded for itself can begin with it.
    public let isIndependent: Bool
    /// Its first ``count`` bytes are the packet.
    public let bytes: InlineArray<256, UInt8>
    /// 1…``capacity``.
    public let count: Int
    /// Samples of the call's queue before this frame.
    var position = 0

    /// Makes a frame.
    @_noAllocation @_noLocks
    public init(_ bytes: InlineArray<256, UInt8>, count: Int, settings: EncoderSettings, isIndependent: Bool) {
        self.bytes = bytes
        self.count = min(max(count, 0), Self.capacity)
        self.settings = settings
        self.isIndependent = isIndependent
    }
}

/// How a call sends what it hears of a mix.
@frozen
public enum FrameSharing: Equatable, BitwiseCopyable, Sendable {
    /// It encodes for itself, because it sends something else, or in another way than any mix is encoded.
    case alone
    /// It encodes for itself, and can begin with a shared frame of these settings that is independent.
    case ready(EncoderSettings)
    /// It sends the shared frames of these settings.
    case follows(EncoderSettings)

    /// Compares all of it. Written out, because media threads compare it, and what the compiler writes is not analysed.
    @_noAllocation @_noLocks
    public static func == (one: FrameSharing, other: FrameSharing) -> Bool {
        switch (one, other) {
        case (.alone, .alone): true
        case (.ready(let one), .ready(let other)), (.follows(let one), .follows(let other)): one == other
        case (.alone, _), (.ready, _), (.follows, _): false
        }
    }

    /// The settings of shared frames that the call can send; nil if it encodes for itself in any case.
    public var settings: EncoderSettings? {
        @_noAllocation @_noLocks get {
            switch self {
            case .alone: nil
            case .ready(let settings), .follows(let settings): settings
            }
        }
    }
}

/// The mixer's side of a call's shared frames. It gives frames, and learns how the call sends.
struct SharedFrameWriter: ~Copyable, Sendable {
    private var frames: SPSCRing<SharedFrame>.Producer
    private var manners: SPSCRing<FrameSharing>.Consumer
    private(set) var sharing = FrameSharing.alone

    init(frames: consuming SPSCRing<SharedFrame>.Producer, manners: consuming SPSCRing<FrameSharing>.Consumer) {
        self.frames = frames
        self.manners = manners
    }

    @_noAllocation @_noLocks
    mutating func update() { while let newest = manners.pop() { sharing = newest } }

    /// Gives a frame, before its samples. If the ring is full, the call encodes this one for itself.
    @_noAllocation @_noLocks
    mutating func give(_ frame: SharedFrame, at position: Int) {
        var placed = frame
        placed.position = position
        _ = frames.push(placed)
    }
}

/// The media worker's side of a call's shared frames.
struct SharedFrameReader: ~Copyable, Sendable {
    private var frames: SPSCRing<SharedFrame>.Consumer
    private var manners: SPSCRing<FrameSharing>.Producer
    /// What the mixer knows.
    private var told = FrameSharing.alone
    /// A frame of samples that were not read yet.
    private var later: SharedFrame?
    /// Where in the queue the samples were that were provided last, if nothing has changed them.
    private var position: Int?

    /// Both sides.
    static func pair() -> SharedFramePair {
        let frames = SPSCRing<SharedFrame>(capacity: frameCapacity)
        let manners = SPSCRing<FrameSharing>(capacity: 4)
        return SharedFramePair(
            writer: SharedFrameWriter(frames: frames.producer, manners: manners.consumer),
            reader: SharedFrameReader(frames: frames.consumer, manners: manners.producer))
    }

    /// Frames that may wait: twice those whose samples may (``MixPort/mostWaiting``).
    private static let frameCapacity = 8

    private init(frames: consuming SPSCRing<SharedFrame>.Consumer, manners: consuming SPSCRing<FrameSharing>.Producer) {
        self.frames = frames
        self.manners = manners
    }

    /// The call was provided with samples that were at this position of the queue; nil if they were changed on the way.
    @_noAllocation @_noLocks
    mutating func provided(_ position: Int?) { self.position = position }

    /// The frame of the samples that were provided last, once; nil if there is none. Those before it are dropped.
    @_noAllocation @_noLocks
    mutating func take() -> SharedFrame? {
        guard let position else { return nil }
        self.position = nil
        while true {
            if let next = later {
                guard next.position <= position else { return nil }
                later = nil
                if next.position == position { return next }
            }
            guard let popped = frames.pop() else { return nil }
            later = popped
        }
    }

    /// Notifies the mixer of how the call sends. If the ring is full, the next frame does.
    @_noAllocation @_noLocks
    mutating func note(_ sharing: FrameSharing) {
        if sharing != told, manners.push(sharing) { told = sharing }
    }
}

/// Both sides of a call's shared frames.
struct SharedFramePair: ~Copyable {
    var writer: SharedFrameWriter
    var reader: SharedFrameReader

    init(writer: consuming SharedFrameWriter, reader: consuming SharedFrameReader) {
        self.writer = writer
        self.reader = reader
    }
}
