internal import ArgumentParser
internal import AudioKit
internal import CallControl
internal import ConfigReader
internal import ControlPlane
internal import DeviceControl
internal import ExchangeCore
internal import ExchangeServer
internal import Glibc
internal import Loopback
internal import CallMedia
internal import MediaEngine
internal import RTP
internal import Realtime

/// How the process ended, for scripts. docs/exit-codes.md says the same; a test compares both.
///
/// Numbers are never given a new meaning.
enum ExitStatus: Int32, CaseIterable, Sendable {
    case ok = 0
    /// A failure that none of the others names; a call that began and did not end as it should.
    case failed = 1
    case usage = 2
    case configuration = 3
    case loginRefused = 4
    case serverUnreachable = 5
    case certificateNotTrusted = 6
    case portInUse = 7
    case audioFileUnusable = 8
    case recordingFailed = 9
    case callNotAnswered = 10
    case databaseUnusable = 11
    case thresholdsFailed = 12
    case nothingMeasured = 13
    case soundCardUnusable = 14
    case deviceUnreachable = 15
    case noSuchNumber = 16
    case calleeNotReachable = 17
    case scriptFailed = 18
    case takenOver = 19
    case interrupted = 130

    /// The meaning of the number, in a few words.
    var meaning: String {
        switch self {
        case .ok: "done"
        case .failed: "the call or the command was not completed, for a reason that the message gives"
        case .usage: "the command line is wrong"
        case .configuration: "the configuration is wrong or cannot be read"
        case .loginRefused: "the login was refused"
        case .serverUnreachable: "the server cannot be reached"
        case .certificateNotTrusted: "the server's certificate is not trusted"
        case .portInUse: "a port, or a control socket, to listen on is in use"
        case .audioFileUnusable: "an audio file to play cannot be used"
        case .recordingFailed: "a recording could not be written"
        case .callNotAnswered: "the callee declined, was busy or offline, or did not answer"
        case .databaseUnusable: "the exchange's database cannot be opened or read"
        case .thresholdsFailed: "a loopback was measured, and is not within its thresholds"
        case .nothingMeasured: "a loopback's test signal did not come back, so nothing was measured"
        case .soundCardUnusable: "a sound card cannot be used, or went away"
        case .deviceUnreachable: "no running device can be reached at the control socket"
        case .noSuchNumber: "there is no such number or user to call"
        case .calleeNotReachable: "the callee cannot be reached now"
        case .scriptFailed: "a call did not go as its script expects"
        case .takenOver: "another exchange has taken over the database that this one owned"
        case .interrupted: "interrupted"
        }
    }
}

/// A command's failure: what to say, and with which status to end.
struct CommandFailure: Error, CustomStringConvertible {
    let status: ExitStatus
    let description: String

    /// - Parameter message: One sentence or more, with what to try; without the program's name.
    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        description = message
    }
}

extension ExitStatus {
    /// The status of `error`.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure.status
        case let error as ConfigError:
            // Scripts know the database's own number, wherever it is found out that there can be none.
            let isDatabase = error.problems.allSatisfy { $0.isWarning || ["database", "store"].contains($0.key) }
            self = isDatabase ? .databaseUnusable : .configuration
        case let error as AudioFileError: self = error.purpose == .record ? .recordingFailed : .audioFileUnusable
        case let error as SignalingError: self.init(error)
        case let error as RealtimeError: self = error.errno == EADDRINUSE ? .portInUse : .failed
        case is PacketRecordingError: self = .audioFileUnusable
        case let error as MediaStartError: self = error.file.map { ExitStatus($0) } ?? .failed
        case let error as ControlSocketError: self.init(error)
        case let error as ExchangeError: self.init(error)
        case let error as StoreError: self = error.code == .fenced ? .takenOver : .databaseUnusable
        case let error as LoopbackError: self.init(error)
        default: self = .failed
        }
    }

    private init(_ error: LoopbackError) {
        self =
            switch error.code {
            case .fileNotWritten: .recordingFailed
            case .cardsNotApart: .usage
            default: .soundCardUnusable
            }
    }

    private init(_ error: ControlSocketError) {
        self =
            switch error.code {
            case .inUse: .portInUse
            case .notUsable: .failed
            case .noDevice, .lost: .deviceUnreachable
            }
    }

    private init(_ error: ExchangeError) {
        switch error.code {
        case .portInUse: self = .portInUse
        case .databaseNotUsable: self = .databaseUnusable
        case .plainTextRefused, .addressNotUsable, .certificateNotUsable, .usersFileMissing: self = .configuration
        default: self = .failed
        }
    }

    private init(_ error: SignalingError) {
        switch error.code {
        case .serverUnreachable, .notAnExchange, .timedOut, .serverError, .disconnected: self = .serverUnreachable
        case .certificateNotTrusted: self = .certificateNotTrusted
        case .loginRefused, .tokenExpired, .tokenRejected, .notAllowed, .notAuthenticated: self = .loginRefused
        case .plainTextRefused, .badConfiguration: self = .configuration
        default: self = .failed
        }
    }

    /// Says what went wrong and ends the process. Asked for help or the version, says that and ends it well.
    static func end(with error: any Error) -> Never {
        switch Handset.exitCode(for: error) {
        case .success:
            LogOptions.finish()
            Handset.exit(withError: error)
        case .validationFailure:
            LogOptions.finish()
            let hint = UnknownWord.find(in: Array(CommandLine.arguments.dropFirst()))
            Terminal.printError(UnknownWord.message(Handset.fullMessage(for: error), hint: hint))
            exit(ExitStatus.usage.rawValue)
        default:
            if let code = error as? ExitCode {
                LogOptions.finish()
                exit(code.rawValue)
            }
            let style = TerminalStyle.standardError
            // A log that takes nothing takes this line as little, and must not keep the process from ending.
            LogOptions.finish(
                saying: "\(style.bold("handset:")) \(style.red("error:")) \(String(describing: error))")
            exit(ExitStatus(error).rawValue)
        }
    }
}
