// Report: the results of `handset loopback`, for people, for programs, and as a live view.

public import AudioKit
public import LoopbackAnalysis

/// One run of `handset loopback`, with all that its reports say.
public struct LoopbackRun: Equatable, Sendable {
    /// What was measured.
    public enum Mode: String, CaseIterable, Sendable {
        /// A card, out and back in.
        case device
        /// A whole call to a device that echoes.
        case call
        /// Hours of it.
        case soak
    }

    /// A part of the delay.
    public struct Stage: Equatable, Sendable {
        /// Its name.
        public let name: String
        /// Its share of the delay, in milliseconds.
        public let milliseconds: Double

        /// Makes a stage.
        public init(_ name: String, milliseconds: Double) { (self.name, self.milliseconds) = (name, milliseconds) }
    }

    /// A fact about the run, or a counter of it: a label and a text.
    public struct Fact: Equatable, Sendable {
        /// What it is.
        public let label: String
        /// Its value, with its unit.
        public let value: String

        /// Makes a fact.
        public init(_ label: String, _ value: String) { (self.label, self.value) = (label, value) }
    }

    /// What was measured.
    public var mode: Mode
    /// When it began, as ISO 8601 has it.
    public var startedAt: String
    /// Which Handset measured, and where; nil if unknown.
    public var origin: RunOrigin?
    /// What the measured card went through; nil of a call.
    public var trouble: CardTrouble?
    /// Cards, formats, peers, counters: what a reader should know, in order.
    public var facts: [Fact] = []
    /// What the analysis found.
    public var measurement: LoopbackMeasurement
    /// A soak's minutes.
    public var minutes: [SoakMonitor.Minute] = []
    /// Where the delay comes from, as far as that is known.
    public var stages: [Stage] = []
    /// Likeness of speech that went through a call.
    public var speech: LikenessReport?
    /// How good that speech sounded; nil if it was not measured.
    public var quality: SpeechQuality?
    /// Files with the worst moments, worst first.
    public var momentFiles: [String] = []
    /// Periods by which gaps may recur.
    public var periods: [Period] = []
    /// An earlier report with which to compare this one.
    public var baseline: LoopbackBaseline?
    /// What is good enough.
    public var thresholds: LoopbackThresholds

    /// Makes a run with the usual thresholds of its mode.
    public init(mode: Mode, startedAt: String, measurement: LoopbackMeasurement) {
        self.mode = mode
        self.startedAt = startedAt
        self.measurement = measurement
        thresholds = LoopbackThresholds(mode)
    }
}

/// Where a report comes from.
public struct RunOrigin: Equatable, Sendable {
    /// Handset's version.
    public var version: String
    /// The host's name.
    public var host: String
    /// Its kernel and processor, such as "Linux 6.1.0 x86_64".
    public var system: String

    /// Says where a report comes from.
    public init(version: String, host: String, system: String) {
        self.version = version
        self.host = host
        self.system = system
    }

    /// For a person, in a line.
    public var text: String { "Handset \(version) on \(host) (\(system))" }
}
