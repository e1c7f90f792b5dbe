import ConfigReader
import Glibc
import HTTPTransport
import Logging
import NIOCore
import Core
import Realtime

/// Has new connections get the newest certificate: that in the files, which are looked at every second, or one that the
/// exchange issues by itself before the last one ends.
///
/// Lives on the hub's event loop; files are looked at on threads for files, so that a disk that hangs stops nothing else. A
/// certificate that cannot be used changes nothing.
final class CertificateKeeper {
    private static let interval = TimeAmount.seconds(1)

    private enum Source {
        case files(CertificateFiles)
        case own(OwnAuthority, good: ClosedRange<Int64>)
    }

    private var source: Source
    private let front: ExchangeFront
    private let listener: HTTPListener
    private let hub: ExchangeHub
    private let logger: Logger
    /// Of the files as they were read last, with success or not.
    private var read: CertificateVersions?
    /// Of the files a second ago: while one of two is being replaced, they do not belong together.
    private var seen: CertificateVersions?
    /// When the certificate in use ends: seconds since 1970.
    private var end: time_t
    private var alarm: CertificateAlarm
    /// Counts the sources: what was begun for an earlier one is not taken.
    private var generation = 0

    /// - Parameters:
    ///   - prepared: The certificate in use. Reading the configuration has warned of its end.
    ///   - identity: The same.
    init(
        _ configuration: ExchangeConfiguration, _ prepared: PreparedCertificate, _ identity: ServerIdentity,
        front: ExchangeFront, listener: HTTPListener, hub: ExchangeHub, logger: Logger
    ) {
        if let files = configuration.serverCertificate, case .files(_, let versions) = prepared {
            source = .files(files)
            read = versions
        } else if let authority = configuration.ownAuthority, let issued = prepared.issued {
            source = .own(authority, good: issued.good)
        } else {
            preconditionFailure("a certificate is kept of an exchange that has one")
        }
        end = identity.end
        alarm = CertificateAlarm(last: time(nil))
        self.front = front
        self.listener = listener
        self.hub = hub
        self.logger = logger
    }

    /// Looks a second from now, and then a second after each look.
    func start() {
        hub.loop.assumeIsolated().scheduleTask(in: Self.interval) { [weak self] in
            guard let self, !hub.isStopping else { return }
            look()
        }
    }

    private func look() {
        let began = generation
        switch source {
        case .files(let files):
            warnOfEnd(of: files)
            hub.runWithFiles {
                CertificateVersions(files)
            } then: { [weak self] versions in
                guard let self, !hub.isStopping else { return }
                start()
                if generation == began { compare(versions, of: files) }
            }
        case .own(let authority, let good):
            start()
            let now = MonotonicClock.wallTime
            guard !good.contains(now.unixMilliseconds / 1_000) else { return }
            // Once at a time: the next look is at the new one, or after an hour.
            source = .own(authority, good: now.unixMilliseconds / 1_000 - 3_600...now.unixMilliseconds / 1_000 + 3_600)
            hub.runWithFiles {
                Self.issue(authority, at: now)
            } then: { [weak self] result in
                guard let self, generation == began else { return }
                if case .success(let issued) = result { source = .own(authority, good: issued.good) }
                take(result.map(\.identity))
            }
        }
    }

    /// Reads a new version that two looks have seen.
    private func compare(_ versions: CertificateVersions, of files: CertificateFiles) {
        defer { seen = versions }
        guard versions != read, versions == seen else { return }
        read = versions
        let began = generation
        hub.runWithFiles {
            Self.load(files)
        } then: { [weak self] result in
            guard let self, generation == began else { return }
            take(result)
            // What hindered it, such as the files' mode, may change without their contents.
            if case .failure = result { retry(began) }
        }
    }

    private func warnOfEnd(of files: CertificateFiles) {
        guard let warning = alarm.warning(end: end, now: time(nil)) else { return }
        logger.warning(
            "The certificate expires soon", metadata: ["file": "\(files.chainPath)", "error": "it \(warning)"])
    }

    /// Reads the files again in a minute.
    private func retry(_ began: Int) {
        hub.loop.assumeIsolated().scheduleTask(in: .minutes(1)) { [weak self] in
            guard let self, generation == began else { return }
            read = nil
        }
    }

    private static func load(_ files: CertificateFiles) -> Result<ServerIdentity, ExchangeError> {
        do throws(CertificateFault) { return .success(try ServerTLS.identity(files)) } catch {
            return .failure(ExchangeError(error))
        }
    }

    private static func issue(_ authority: OwnAuthority, at now: WallClock) -> Result<
        OwnAuthority.Issued, ExchangeError
    > {
        do throws(ExchangeError) { return .success(try authority.issue(at: now)) } catch { return .failure(error) }
    }

    private func take(_ result: Result<ServerIdentity, ExchangeError>) {
        switch result {
        case .success(let identity):
            listener.replace(tls: identity.context)
            (end, alarm) = (identity.end, CertificateAlarm())
            front.use(names: identity.names)
            logger.notice(
                "A new certificate is in use; open connections keep the earlier one",
                metadata: [
                    "serial": "\(identity.serial)",
                    "days": "\((Int64(identity.end) - MonotonicClock.wallTime.unixMilliseconds / 1_000) / 86_400)",
                ])
        case .failure(let error):
            logger.error(
                "The new certificate cannot be used; the earlier one stays in use", metadata: ["error": "\(error)"])
        }
    }

    /// Takes the certificate of another configuration, which has been looked at.
    func adopt(_ configuration: ExchangeConfiguration, _ prepared: PreparedCertificate) {
        switch prepared {
        case .none: return
        case .files(let identity, let versions):
            guard let files = configuration.serverCertificate else { return }
            generation += 1
            source = .files(files)
            read = versions
            front.show(root: nil)
            take(.success(identity))
        case .own(let issued):
            guard let authority = configuration.ownAuthority else { return }
            generation += 1
            source = .own(authority, good: issued.good)
            front.show(root: issued.root)
            take(.success(issued.identity))
        }
    }
}

/// Warns of a certificate that ends soon: at once, and then once a day.
struct CertificateAlarm {
    /// When it last warned: seconds since 1970.
    private var last: time_t?

    init(last: time_t? = nil) { self.last = last }

    /// - Parameters:
    ///   - end: When the certificate ends: seconds since 1970.
    ///   - now: Seconds since 1970.
    /// - Returns: The warning, to be read after the certificate's name; nil if none is due.
    mutating func warning(end: time_t, now: time_t) -> String? {
        guard let warning = CertificateFiles.warning(end: end, now: now) else { return nil }
        // A clock that was set back must not silence it.
        if let last, (0..<86_400).contains(now - last) { return nil }
        last = now
        return warning
    }
}

/// What is known of a certificate's two files.
struct CertificateVersions: Hashable, Sendable {
    private let chain: FileVersion?
    private let key: FileVersion?

    init(_ files: CertificateFiles) {
        chain = FileVersion(of: files.chainPath)
        key = FileVersion(of: files.keyPath)
    }
}

/// The certificate of a configuration, ready to be used.
enum PreparedCertificate: Sendable {
    case none
    case files(ServerIdentity, CertificateVersions)
    case own(OwnAuthority.Issued)

    /// Reads it, or makes it.
    init(_ configuration: ExchangeConfiguration) throws(ExchangeError) {
        if let files = configuration.serverCertificate {
            // Before reading: what replaces them meanwhile is read by the next looks.
            let versions = CertificateVersions(files)
            do throws(CertificateFault) { self = .files(try ServerTLS.identity(files), versions) } catch {
                throw ExchangeError(error)
            }
        } else if let authority = configuration.ownAuthority {
            self = .own(try authority.issue(at: MonotonicClock.wallTime))
        } else {
            self = .none
        }
    }

    /// `nil` without TLS.
    var identity: ServerIdentity? {
        switch self {
        case .none: nil
        case .files(let identity, _): identity
        case .own(let issued): issued.identity
        }
    }

    /// What the exchange has issued by itself.
    var issued: OwnAuthority.Issued? {
        if case .own(let issued) = self { issued } else { nil }
    }
}

extension ExchangeError {
    /// A certificate's file cannot be used.
    init(_ fault: CertificateFault) {
        self.init(.certificateNotUsable, "cannot use \(fault.path) for TLS: it \(fault.message).")
    }
}
