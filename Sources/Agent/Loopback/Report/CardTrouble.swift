/// Problems of a measured card and its thread.
public struct CardTrouble: Equatable, Sendable {
    /// Times that the buffer to play from ran empty.
    public var playbackXruns: Int
    /// Times that the buffer of what was captured ran over.
    public var captureXruns: Int
    /// How many of both came because Handset's own thread was held up.
    public var ownXruns: Int
    /// The longest that it was held up, in milliseconds.
    public var longestHoldUpMilliseconds: Double
    /// Frames that the measuring program had not ready, or did not take in time.
    public var lateFrames: Int
    /// The thread was refused real-time priority.
    public var isPriorityRefused: Bool
    /// Sound that was kept ahead, in the mean, in milliseconds.
    public var aheadMilliseconds: Double
    /// Sound that was kept ahead beyond the default because this machine needed it, in milliseconds. The measured delay
    /// includes it, and the path does not cause it.
    public var extraAheadMilliseconds: Double
    /// Gaps that begin at an xrun that Handset's own delayed thread caused.
    public var ownGaps: Int

    /// Says what a card went through.
    public init(
        playbackXruns: Int = 0, captureXruns: Int = 0, ownXruns: Int = 0, longestHoldUpMilliseconds: Double = 0,
        lateFrames: Int = 0, isPriorityRefused: Bool = false, aheadMilliseconds: Double = 0,
        extraAheadMilliseconds: Double = 0, ownGaps: Int = 0
    ) {
        self.playbackXruns = playbackXruns
        self.captureXruns = captureXruns
        self.ownXruns = ownXruns
        self.longestHoldUpMilliseconds = longestHoldUpMilliseconds
        self.lateFrames = lateFrames
        self.isPriorityRefused = isPriorityRefused
        self.aheadMilliseconds = aheadMilliseconds
        self.extraAheadMilliseconds = extraAheadMilliseconds
        self.ownGaps = ownGaps
    }

    /// Why all gaps, `gaps` in number, are the machine's and not the path's, as the rest of a sentence; nil if a gap
    /// begins where Handset's own thread was not delayed.
    func stall(explaining gaps: Int) -> String? {
        guard gaps > 0, gaps <= ownGaps else { return nil }
        return "this machine kept Handset's thread from the card, for up to "
            + AudioText.number(longestHoldUpMilliseconds.rounded(), "ms")
    }

    /// Why there were gaps, and what to try; nil if the card and its thread know of none.
    var advice: String? {
        let xruns = playbackXruns + captureXruns
        if ownXruns > 0 {
            let priority =
                isPriorityRefused ? "allow it real-time priority (CAP_SYS_NICE, or rtprio in limits.conf), or " : ""
            return "Other work on this machine, and not the card: Handset's own thread was held up for "
                + "\(AudioText.number(longestHoldUpMilliseconds.rounded(), "ms")), with "
                + "\(AudioText.number(aheadMilliseconds.rounded(), "ms")) of sound ahead. Leave the machine more room, "
                + "\(priority)keep more ahead with --buffer-ms \(Int(suggestedBufferMilliseconds))."
        }
        if xruns > 0 {
            return
                "The card ran empty or over \(xruns == 1 ? "once" : "\(xruns) times") although Handset's thread came in "
                + "time: look at its driver, its cable or hub, or the sound server behind it; --buffer-ms keeps more ahead."
        }
        guard lateFrames > 0 else { return nil }
        return
            "This machine was too busy to make the test signal in time, for \(lateFrames) frames: measure while less "
            + "else runs."
    }

    private var suggestedBufferMilliseconds: Double {
        min(1_000, (max(4 * aheadMilliseconds, 2 * longestHoldUpMilliseconds) / 10).rounded(.up) * 10)
    }
}
