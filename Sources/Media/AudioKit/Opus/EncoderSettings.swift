/// How an ``OpusEncoder`` encodes. Values outside the stated ranges are clamped into them.
public struct EncoderSettings: Equatable, BitwiseCopyable, Sendable {
    /// What libopus tunes itself for.
    public enum Application: BitwiseCopyable, Sendable {
        /// Speech, with an internal high-pass filter that follows the pitch and shifts the phase of low tones.
        case voip
        /// Music and everything else: nearest to the input.
        case audio
    }

    /// How much sound one packet carries.
    public enum FrameDuration: Int, CaseIterable, BitwiseCopyable, Sendable {
        /// 10 ms: least delay, most headers, and no in-band FEC worth its bits.
        case tenMilliseconds = 10
        /// 20 ms, which nearly every peer sends.
        case twentyMilliseconds = 20
        /// 40 ms.
        case fortyMilliseconds = 40
        /// 60 ms: fewest headers.
        case sixtyMilliseconds = 60

        /// Samples of each channel in one frame at 48 kHz.
        public var samples: Int {
            @_noAllocation @_noLocks get { rawValue &* 48 }
        }
    }

    /// The widest audio band the encoder may choose.
    public enum Bandwidth: BitwiseCopyable, Sendable {
        /// 4 kHz of audio.
        case narrowband
        /// 6 kHz.
        case mediumband
        /// 8 kHz.
        case wideband
        /// 12 kHz.
        case superwideband
        /// 20 kHz.
        case fullband

        /// The highest frequency of the band.
        var edgeHertz: Int {
            switch self {
            case .narrowband: 4_000
            case .mediumband: 6_000
            case .wideband: 8_000
            case .superwideband: 12_000
            case .fullband: 20_000
            }
        }
    }

    /// 1 or 2. Stereo input is interleaved.
    public var channels = 1
    /// Bits a second the encoder aims at: 6 000 to 510 000.
    public var bitrateBps = 32_000
    /// 0 (cheapest) to 10 (best).
    public var complexity = 5
    /// Loss the encoder should expect, 0 to 100 percent. It decides how many bits go to FEC; at 0 none do.
    public var expectedLossPercent = 0
    /// All packets of a duration have the same size, so that sizes reveal nothing of the sound.
    public var constantBitrate = false
    /// In-band forward error correction: each packet may carry a coarse copy of the frame before it (RFC 6716 §2.1.7).
    public var fec = true
    /// Discontinuous transmission: silence encodes to packets of at most two bytes, which need not be sent.
    public var dtx = false
    /// The application that libopus optimises for. Default: closest to the input, so that an echo equals the original.
    public var application = Application.audio
    /// Whether to take the signal for speech: keeps libopus in its speech modes, where in-band FEC works. Default: yes.
    public var expectsSpeech = true
    /// Sound in one packet.
    public var frameDuration = FrameDuration.twentyMilliseconds
    /// The widest band the encoder may choose.
    public var maxBandwidth = Bandwidth.fullband

    /// Omits bands that a receiver with this sampling rate, in Hz, cannot play (RFC 7587 §6.1, `maxplaybackrate`).
    public mutating func limitBandwidth(toPlaybackRate rate: Int) {
        let widest: Bandwidth =
            switch rate {
            case ..<12_000: .narrowband
            case ..<16_000: .mediumband
            case ..<24_000: .wideband
            case ..<48_000: .superwideband
            default: .fullband
            }
        if widest.edgeHertz < maxBandwidth.edgeHertz { maxBandwidth = widest }
    }

    /// Settings for speech over a network: mono, 20 ms, 32 kb/s, FEC ready for when loss is reported.
    public init() {}

    /// Compares all of it. Written out, because media threads compare settings, and what the compiler writes is not analysed.
    @_noAllocation @_noLocks
    public static func == (one: EncoderSettings, other: EncoderSettings) -> Bool {
        one.channels == other.channels && one.bitrateBps == other.bitrateBps
            && one.constantBitrate == other.constantBitrate && one.complexity == other.complexity
            && one.fec == other.fec && one.expectedLossPercent == other.expectedLossPercent && one.dtx == other.dtx
            && one.application == other.application && one.expectsSpeech == other.expectsSpeech
            && one.frameDuration.rawValue == other.frameDuration.rawValue
            && one.maxBandwidth.edgeHertz == other.maxBandwidth.edgeHertz
    }
}
