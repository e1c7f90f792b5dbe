internal import AudioDevices
internal import AudioKit
internal import BlockingWork
internal import CallAgent
internal import CallControl
internal import Core
internal import DeviceDiagnosis
internal import Files
internal import FoundationEssentials
internal import Glibc
internal import HTTPTransport
internal import Realtime
internal import SIPClient
internal import Synchronization

/// Looks at this machine as a device of a configuration would use it: ports, card, rights, disk, descriptors.
struct MachineProbe: Sendable {
    let configuration: DeviceConfiguration

    /// Calls that the configuration allows at a time; nil for as many as the machine carries.
    private var calls: Int? {
        switch configuration.answer.callLimit {
        case .automatic: nil
        case .calls(let limit): limit
        }
    }

    // MARK: - Ports

    /// Ports in use that are listed of a range.
    private static let listed = 5

    /// Binds each UDP port of the configuration for a moment.
    func ports() -> [PortFacts] {
        let media = configuration.media
        let address = media.address ?? (isServerHere ? .loopbackIPv4 : .anyIPv4)
        var facts: [PortFacts] = []
        if media.port != 0 {
            for worker in 0..<media.workers {
                guard let port = UInt16(exactly: Int(media.port) + worker) else { break }
                facts.append(Self.port("media.port", address.withPort(port)))
            }
        }
        if let range = media.callPorts { facts.append(Self.range(range, at: address, needed: calls ?? 1)) }
        if let sip = configuration.account.sip, sip.localPort != 0 {
            facts.append(Self.port("account.sip.port", SocketAddress.anyIPv4.withPort(sip.localPort)))
        }
        return facts
    }

    private var isServerHere: Bool {
        ProbedServer.ofExchange(configuration.account).allSatisfy { $0.endpoint?.isLoopback ?? false }
            && configuration.account.sip == nil
    }

    private static func port(_ key: String, _ address: SocketAddress) -> PortFacts {
        var facts = PortFacts("\(key): UDP \(address)")
        do throws(RealtimeError) {
            _ = try UDPSocket(boundTo: address, receiveBufferBytes: 4_096)
        } catch {
            if error.isAddressInUse { facts.inUse = [Int(address.port)] } else { facts.fault = "\(error)" }
            facts.countInUse = facts.inUse.count
        }
        return facts
    }

    private static func range(
        _ ports: ClosedRange<UInt16>, at address: SocketAddress, needed: Int
    ) -> PortFacts {
        var facts = PortFacts(
            "media.ports: UDP \(address.host) \(ports.lowerBound)-\(ports.upperBound)", count: ports.count,
            needed: needed)
        for port in ports {
            let one = Self.port("media.ports", address.withPort(port))
            facts.fault = facts.fault ?? one.fault
            facts.countInUse += one.countInUse
            if facts.inUse.count < listed { facts.inUse += one.inUse }
        }
        return facts
    }

    // MARK: - The card

    /// Opens the card for both directions that are configured, plays silence, and measures what is captured. It blocks.
    func card() -> SoundCardFacts {
        let audio = configuration.audio
        var device = AudioDeviceConfiguration(playback: audio.playback, capture: audio.capture)
        device.periodMilliseconds = audio.periodMilliseconds
        var facts = SoundCardFacts("\(audio.playback ?? "none") to play on, \(audio.capture ?? "none") to capture from")
        guard audio.playback != nil || audio.capture != nil else { return facts }
        var trial = SoundTrial(device)
        (trial.seconds, trial.playsTone) = (2, false)
        do throws(RealtimeError) {
            let result = try trial.run()
            facts.failure = result.failure.map { "\($0)" }
            facts.stalled = result.stalled.map { "\($0)" }
            if result.capture != nil { facts.peakDBFS = result.peakDBFS }
        } catch {
            facts.failure = "\(error)"
        }
        return facts
    }

    // MARK: - Rights

    /// Tries the priority on a thread of its own.
    func rights() -> RightsFacts {
        let priority = configuration.media.realtimePriority
        var facts = RightsFacts(user: Int(getuid()), priority: priority.map { Int($0) })
        guard let priority else { return facts }
        facts.priorityRefusal = Self.refusal(of: priority)
        do throws(RealtimeError) { try ProcessMemory.checkLock() } catch { facts.lockRefusal = "\(error)" }
        return facts
    }

    private static func refusal(of priority: Int32) -> String? {
        let refusal = Refusal()
        do throws(RealtimeError) {
            let thread = try RealtimeThread(name: "doctor") {
                do throws(RealtimeError) {
                    try RealtimeThread.makeCurrentRealtime(priority: priority)
                } catch {
                    refusal.note("\(error)")
                }
            }
            thread.join()
        } catch {
            refusal.note("\(error)")
        }
        return refusal.text
    }

    private final class Refusal: Sendable {
        private let kept = Mutex<String?>(nil)
        var text: String? { kept.withLock { $0 } }
        func note(_ text: String) { kept.withLock { $0 = text } }
    }

    // MARK: - The disk

    /// The folders that the configuration names, and those of files that it names.
    func folders() -> [FolderFacts] {
        var facts: [FolderFacts] = []
        if let folder = configuration.behaviour.recordingFolder {
            var recordings = Self.folder(folder, "behaviour.record_folder")
            let format = configuration.behaviour.recordingFormat
            let bytesASecond = format.container == .wav ? 96_000 : 4_000
            recordings.hourBytes = 3_600 * bytesASecond * format.channels
            if let limit = configuration.behaviour.recordingLimits.megabytes {
                recordings.limitBytes = limit * 1_000_000
                recordings.heldBytes = Self.bytes(in: folder)
            }
            facts.append(recordings)
        }
        let files = [
            (configuration.device.callRecords, "device.call_records"),
            (configuration.account.sessionFile, "account.session_file"),
            (configuration.account.instanceFile, "account.sip.instance_file"),
        ]
        for case (let file?, let key) in files { facts.append(Self.folder(WritableFolder.parent(of: file), key)) }
        return facts
    }

    private static func folder(_ path: String, _ key: String) -> FolderFacts {
        var facts = FolderFacts(path, key: key)
        do throws(RegularFileError) { try WritableFolder.check(path) } catch { facts.fault = error.message }
        var present = path
        while !FileManager.default.fileExists(atPath: present), present != "/", present != "." {
            present = WritableFolder.parent(of: present)
        }
        facts.freeBytes = WritableFolder.freeBytes(at: present)
        return facts
    }

    private static func bytes(in folder: String) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasSuffix(".wav") || $0.hasSuffix(".opus") }.reduce(0) { sum, name in
            sum + (FileMeasure(path: "\(folder)/\(name)")?.bytes ?? 0)
        }
    }

    // MARK: - Descriptors

    /// The limit of this process, which may differ from that of a unit.
    func descriptors() -> DescriptorFacts { DescriptorFacts(limit: ReserveDescriptor.limit, calls: calls) }
}
