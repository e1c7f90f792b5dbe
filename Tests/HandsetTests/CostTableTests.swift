import AudioPort
import CallAgent
import CallBridging
import CallControl
import CallFlow
import CallMeetings
import CallWebhooks
import ControlPlane
import ControlWire
import Foundation
import SignalWire
import Testing
import Voicemail

@testable import BotCalls
@testable import BotWire
@testable import CallFlows
@testable import CallMedia
@testable import CallPrograms
@testable import CallSounds
@testable import Core
@testable import DeviceControl
@testable import ExchangeCore
@testable import ExchangeServer
@testable import HTTPTransport
@testable import MediaEngine
@testable import Playout
@testable import Realtime
@testable import SIP
@testable import SIPSignaling
@testable import SecureTransport

/// The tables of docs/security.md that say what clients can cost at most: each number on them follows from the limits in
/// the code.
@Suite("The tables of costs")
struct CostTableTests {
    private static func page() throws -> String {
        try String(contentsOf: ContractTests.root.appending(path: "docs/security.md"), encoding: .utf8)
    }

    /// The rows of the tables under a heading, without their heads: the cells of each.
    private static func rows(under heading: String) throws -> [[String]] {
        let parts = try page().components(separatedBy: "\n\(heading)\n")
        let section = try #require(parts.dropFirst().first, "\(heading)")
        let lines = section.split(separator: "\n", omittingEmptySubsequences: false).prefix { !$0.hasPrefix("#") }
        let rows = lines.filter { $0.hasPrefix("| ") }.map { line in
            line.dropFirst().dropLast().components(separatedBy: " | ").map {
                $0.trimmingCharacters(in: .whitespaces.union(["|"]))
            }
        }
        return rows.filter { !$0[0].hasPrefix("---") }.dropFirst().map { $0 }
    }

    /// The numbers of a cell, in their order.
    private static func numbers(_ cell: String) -> [Double] {
        cell.replacing(",", with: "").matches(of: #/\d+(?:\.\d+)?/#).compactMap { Double($0.output) }
    }

    // MARK: Each attacker

    private static let board = 128 << 20
    private static func mebibytes(_ bytes: Int) -> Double { Double(bytes) / 1_048_576 }
    private static func kibibytes(_ bytes: Int) -> Double { Double(bytes) / 1_024 }
    private static func seconds(_ nanoseconds: Int64) -> Double { Double(nanoseconds) / 1_000_000_000 }

    /// The number of times that a response is sent to a peer that never acknowledges it (RFC 3261 §17.2.1).
    private static func repetitions(_ timers: TransactionTimers = TransactionTimers()) -> Int {
        var (count, at, interval) = (1, Duration.zero, timers.t1)
        while at + interval < timers.timeout {
            at += interval
            interval = min(interval * 2, timers.t2)
            count += 1
        }
        return count
    }

    /// The most that one address without a call may use of the memory for transactions.
    private static func largestShare(of budget: TransactionBudget) throws -> Int {
        let stranger = TransactionBudget.Peer.stranger(try #require(ClientAddress("192.0.2.1")))
        var (low, high) = (0, budget.limit)
        while low < high {
            let middle = (low + high + 1) / 2
            if budget.allows(middle, for: stranger) { low = middle } else { high = middle - 1 }
        }
        return low
    }

    private static func ofDevice() throws -> [String: [[Double]]] {
        let transactions = SIPLimits.transactionMemory(of: board)
        let stranger = try largestShare(of: TransactionBudget(limit: transactions))
        let perHost = DatagramGate.perHost
        let longestCall = BehaviourConfiguration().maximumDuration
        var rows: [String: [[Double]]] = [:]
        rows["A stranger by SIP"] = [
            [mebibytes(stranger), mebibytes(transactions)],
            [perHost.perSecond, Double(perHost.burst), DatagramGate.ofStrangers.perSecond],
            [Double(CallAdmission.streams(in: board)), Double(SIPLimits.calls)],
            [
                Double(repetitions()), TransactionTimers().timeout.seconds, Double(SoundLimit.bytes),
                seconds(SoundLimit.intervalNanoseconds),
            ],
        ]
        rows["A stranger by RTP"] = [
            [Double(DatagramBatch.capacity)],
            [
                Double(ReceiveBudget.perTurn), seconds(ReceiveBudget.shortestTurnNanoseconds) * 1_000,
                Double(ReceiveBudget.perTurn) * seconds(ReceiveBudget.datagramNanoseconds) * 1_000,
            ],
            [seconds(AddressLatch.silenceNanoseconds), seconds(AddressLatch.guessNanoseconds)],
            [seconds(AddressLatch.guessNanoseconds)],
        ]
        rows["The peer of a call"] = [
            [
                mebibytes(CallAdmission.bytesOfStream), Double(SRTPSources.capacity), Double(PacketStore.capacity),
                Double(PacketStore.blockSize),
            ],
            [
                Double(ReceiveBudget.perTurn), Double(SRTPSources.mostAtOnce), Double(SRTPSources.packetsForNew),
            ],
            [(longestCall ?? .zero).seconds / 3_600, PortPool.rest.seconds],
            [Double(SentPackets.mostCredit / 2), Double(SentPackets.mostTimes)],
        ]
        let mailbox = VoicemailBounds()
        // Samples of 16 bits.
        let waiting = [kibibytes(CallRecording.mostPending * 2), kibibytes(SoundFile.pieceSamples * 2)]
        let second = kibibytes(VoicemailBounds.rate * 2)
        rows["A caller of a flow"] = [
            waiting + [Double(FlowRecord.longestPause) * second],
            // Of one call come two, of each of those two more, as often as calls may lead to calls.
            [Double(1 << (CallHops.most + 1) - 2)], [Double(CallDials.mostCalls), second], [],
        ]
        rows["A flow's server"] = [
            [
                kibibytes(FlowDocument.longest), Double(SoundTurns.mostRunning),
                mebibytes(FlowServerPlan.longestSound), Double(StatusQueue.mostWaiting),
                mebibytes(FlowSounds.mostBytes),
            ],
            [Double(FlowCourse.mostRequests), Double(FlowCourse.mostIdleRequests)],
            [FlowServerPlan.longestTimeout.seconds, Double(FlowCourse.mostDials)],
            [Double(WebhookQuestion.mostRedirects)],
        ]
        rows["A caller of a mailbox"] = [
            waiting + [VoicemailCourse.quietTime.seconds * second], [],
            [
                mailbox.longest.seconds, Double(mailbox.mostOfCaller), Double(mailbox.mostMessages),
                Double(mailbox.bytesOfCaller / 1_000_000), Double(mailbox.megabytes),
            ], [],
        ]
        let (frame, float) = (MixPort.frameSamples * 2, MixPort.frameSamples * 4)
        let (member, room) = (2 * MixPort.capacity * 2 + frame, 3 * frame + 2 * float)
        rows["A member of a conference"] = [
            [kibibytes(member).rounded(.up), kibibytes(room).rounded()], [MeetingHall.mostLoad * 100],
            [Double(MeetingPlan.usualMembers), Double(MeetingHall.mostMembers), Double(MeetingHall.mostRooms)], [],
        ]
        rows["A bot's server"] = [
            [
                mebibytes(WireLimits.backlogBytes), mebibytes(WireLimits.realtimeBacklogBytes),
                mebibytes(WireLimits.messageBytes), mebibytes(WireLimits.outboundBytesAtMost),
                mebibytes(BotRequestServer.requestMemory),
            ],
            [
                Double(WireLimits.messagesPerSecond), Double(WireLimits.messages),
                Double(PasswordGuard.perAddress), PasswordGuard.window.seconds,
            ],
            [Double(RequestConnections.most), Double(RequestConnections.mostOfAddress)],
            [kibibytes(WireLimits.outboundBytes)],
        ]
        rows["A program in a call"] = [
            [kibibytes(ProgramRun.eventBytes)],
            [Inflow.log.rate.perSecond / 1_024, Inflow.commands.rate.perSecond / 1_024],
            [Double(ProgramLife.mostRestarts)], [],
        ]
        rows["A program at control over HTTP"] = [
            [
                kibibytes(ControlLimits.requestBytes), kibibytes(EventReader.batchBytes),
                kibibytes(RecordingStreams.pieceBytes),
            ], [],
            [
                Double(ControlHTTPService.mostConnections), Double(EventStreams.limit), Double(RecordingStreams.limit),
            ], [],
        ]
        rows["A program at the control socket"] = [
            [kibibytes(ControlLimits.requestBytes), Double(ControlEventBuffer.capacity)], [],
            [Double(ControlServer.clientLimit)], [],
        ]
        return rows
    }

    private static func bounds(isEncrypted: Bool) -> ConnectionBounds {
        ConnectionBounds(
            total: nil, perAddress: nil, descriptors: 1 << 30, outgoing: 0, memory: board, isEncrypted: isEncrypted)
    }

    private static func ofExchange() -> [String: [[Double]]] {
        let (plain, encrypted) = (bounds(isEncrypted: false), bounds(isEncrypted: true))
        let logins = MemoryShares.logins(board)
        let (least, most) = (MemoryShares.leastForLogins, MemoryShares.mostForLogins)
        let shares = MemoryShares.fitting(board)
        let kept = min(StorageQuota.Limits().user, shares.kept / StorageQuota.Limits.shares)
        let turns = FairQueue<Payer, Int, Int>.Limits()
        let unit = Double(WorkCost.timePerUnit.components.attoseconds) / 1e12
        let configuration = ExchangeConfiguration()
        let settings = ExchangeCore.Settings()
        let perConnection = [kibibytes(ConnectionBounds.plainBytes), kibibytes(ConnectionBounds.encryptedBytes)]
        let perAddress = (mebibytes(plain.perAddress * ConnectionBounds.plainBytes) * 10).rounded(.up) / 10
        var rows: [String: [[Double]]] = [:]
        let ofAll = [logins, least, most, MemoryShares.quarter(of: board)].map(mebibytes)
        rows["All strangers at the exchange"] = [
            ofAll + perConnection,
            [Double(turns.quantum), unit, Double(PasswordThread.capacity)],
            [Double(plain.total), Double(encrypted.total), Double(shares.tokens / 2)],
            [mebibytes(OutboundMeter.mostBytes)],
        ]
        rows["One address at the exchange"] = [
            [
                Double(plain.perAddress), perConnection[0], Double(encrypted.perAddress), perConnection[1],
                perAddress,
            ],
            [
                Double(configuration.failedLogins.perAddress), Double(EnrollmentGuard.perAddress),
                configuration.failedLogins.window.seconds,
            ],
            [Double(plain.perAddress), Double(plain.fromThisMachine)],
            [mebibytes(OutboundMeter.mostBytes)],
        ]
        rows["One account at the exchange"] = [
            [
                mebibytes(kept), mebibytes(2 * kept),
                mebibytes(min(StorageQuota.Limits().user, shares.sendBuffers)), mebibytes(4 * turns.payerBytes),
                mebibytes(min(settings.sessionsPerUser * SignalLimits.messageBytes, shares.messages)),
            ],
            [
                Double(turns.quantum), unit, Double(turns.quantum) * unit / 1_000,
                Double(configuration.messagesPerSecond), Double(settings.sessionsPerUser),
                Double(configuration.messageBurst),
            ],
            [
                Double(settings.sessionsPerUser), Double(TokenStore.loginsPerUser),
                Double(TokenStore.tokensPerLogin), Double(settings.invites.open), Double(settings.invites.ofPair),
                Double(SignalLimits.groupsOwned), Double(SignalLimits.groupMembers),
            ],
            [kibibytes(WorkCost.sentBytesPerUnit), kibibytes(WorkCost.sentBytesPerUnit * turns.quantum)],
        ]
        return rows
    }

    @Test("Each cell of the table of attackers has the numbers that follow from the limits")
    func attackers() throws {
        var expected = try Self.ofDevice()
        expected.merge(Self.ofExchange()) { first, _ in first }
        let rows = try Self.rows(under: "## What each can cost at most")
        #expect(Set(rows.map { $0[0] }) == Set(expected.keys))
        for row in rows {
            try #require(row.count == 6, "\(row)")
            for (column, numbers) in (expected[row[0]] ?? []).enumerated() {
                #expect(Self.numbers(row[column + 1]) == numbers, "\(row[0]): \(row[column + 1])")
            }
        }
    }

    // MARK: All together

    /// What an exchange takes up at most on a machine, part by part, in bytes.
    private static func exchange(_ memory: Int) -> (connections: [Int], parts: [Int]) {
        let connections = [false, true].map { ConnectionBounds.fitting(memory, isEncrypted: $0) }
        let bytes = max(connections[0] * ConnectionBounds.plainBytes, connections[1] * ConnectionBounds.encryptedBytes)
        let shares = MemoryShares.fitting(memory)
        return (
            connections,
            [
                MemoryShares.fixed, bytes, MemoryShares.logins(memory), shares.tokens * MemoryShares.tokenBytes,
                shares.kept, shares.total - shares.kept,
            ]
        )
    }

    /// What a device with one account takes up at most.
    private static func device(_ memory: Int) -> (calls: Int, parts: [Int]) {
        let calls = CallAdmission.streams(in: memory)
        let requests = BotRequestServer.requestMemory + RequestConnections.most * ConnectionBounds.encryptedBytes
        return (
            calls,
            [
                CallAdmission.fixedBytes, calls * CallAdmission.bytesOfStream, SIPLimits.transactionMemory(of: memory),
                requests,
            ]
        )
    }

    private static func rounded(_ parts: [Int]) -> [Int] {
        parts.map { Int((mebibytes($0)).rounded(.up)) }
    }

    @Test("The tables of sums have what follows from the limits, and each machine has room for its sum")
    func sums() throws {
        let exchanges = try Self.rows(under: "### An exchange on a small machine").map { $0.flatMap(Self.numbers) }
        let devices = try Self.rows(under: "### A device on a small machine").map { $0.flatMap(Self.numbers) }
        #expect(exchanges.map(\.first) == [128, 256, 512, 1_024] && devices.map(\.first) == exchanges.map(\.first))
        for row in exchanges {
            let (connections, bytes) = Self.exchange(Int(row[0]) << 20)
            let parts = Self.rounded(bytes)
            let sum = parts.reduce(0, +)
            var expected = [Int(row[0]), parts[0], parts[1]]
            expected += connections
            expected += parts[2...]
            #expect(row.map { Int($0) } == expected + [sum])
            #expect(sum <= Int(row[0]))
        }
        for row in devices {
            let (calls, bytes) = Self.device(Int(row[0]) << 20)
            let parts = Self.rounded(bytes)
            let sum = parts.reduce(0, +)
            var expected = [Int(row[0]), parts[0], parts[1], calls]
            expected += parts[2...]
            #expect(row.map { Int($0) } == expected + [sum])
            #expect(sum <= Int(row[0]))
        }
    }

    /// A board that is sold with 128 MB reports less: its kernel takes up some.
    @Test("On every machine from 108 MiB on, all that the defaults allow fits")
    func everyMachineFits() {
        for mebibytes in 108...4_096 {
            let memory = mebibytes << 20
            #expect(Self.exchange(memory).parts.reduce(0, +) <= memory, "an exchange with \(mebibytes) MiB")
            #expect(Self.device(memory).parts.reduce(0, +) <= memory, "a device with \(mebibytes) MiB")
        }
    }

    // MARK: The tests that the page names

    @Test("Every suite of tests that docs/security.md names exists")
    func suitesExist() throws {
        let folder = ContractTests.root.appending(path: "Tests").path
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".swift") }
        var suites: Set<String> = []
        for file in files {
            let text = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
            suites.formUnion(text.matches(of: #/struct ([A-Za-z]+Tests)\b/#).map { String($0.output.1) })
        }
        let named = Set(try Self.page().matches(of: #/`([A-Za-z]+Tests)`/#).map { String($0.output.1) })
        #expect(named.count > 60)
        for name in named.sorted() { #expect(suites.contains(name), "docs/security.md names \(name)") }
    }
}
