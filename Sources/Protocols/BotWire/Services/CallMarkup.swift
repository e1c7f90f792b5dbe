internal import XML

/// A webhook's instructions for a call: the part of TwiML that concerns bots, or its counterpart of Plivo.
public struct CallMarkup: Hashable, Sendable {
    /// One instruction.
    public enum Verb: Hashable, Sendable {
        /// Connect the call with a bot. What follows counts once the stream has ended.
        case stream(BotStream)
        /// Wait.
        case pause(seconds: Int)
        /// End the call.
        case hangUp
        /// Do not answer the call.
        case reject(RejectReason)
        /// Ask elsewhere what to do.
        case redirect(Webhook)
        /// Ask the caller to call another party instead of this device. The verbs that follow apply if that fails.
        case transfer(BotTransfer)
    }

    /// Why a call is not answered.
    public enum RejectReason: String, Hashable, Sendable {
        case rejected
        case busy
    }

    /// The service whose elements a document uses. Telnyx uses Twilio's.
    public enum Dialect: Hashable, Sendable {
        case twilio
        case plivo
    }

    /// The instructions, in order. After the last the call ends.
    public let verbs: [Verb]

    /// Reads a document: any bytes.
    ///
    /// Unknown attributes are ignored, as the services do. An unknown or unsupported element is a fault, so that a call
    /// never follows only half of its instructions.
    ///
    /// - Parameters:
    ///   - document: Up to ``WireLimits/markupBytes``.
    ///   - dialect: The service whose elements it uses.
    ///   - base: Where it comes from, for URLs that are not absolute.
    public init(_ document: [UInt8], _ dialect: Dialect = .twilio, from base: WebAddress? = nil) throws(MarkupFault) {
        let root: XMLElement
        do throws(XMLFault) {
            root = try XMLReader.root(of: document, within: Self.limits)
        } catch {
            throw MarkupFault(error.line, "the answer cannot be read: \(error)")
        }
        guard root.name == "Response" else { throw MarkupFault(root.line, "the root must be <Response>") }
        guard root.children.count <= WireLimits.verbs else {
            throw MarkupFault(root.line, "there are \(WireLimits.verbs) instructions at most")
        }
        let reader = MarkupReader(base: base)
        try reader.expectNoText(in: root)
        var verbs: [Verb] = []
        for element in root.children {
            switch dialect {
            case .twilio: verbs.append(try reader.twilioVerb(element))
            case .plivo: verbs.append(try reader.plivoVerb(element))
            }
        }
        self.verbs = verbs
    }

    private static let limits = XMLLimits(bytes: WireLimits.markupBytes, depth: 4, elements: 256, attributes: 32)
}

/// A bot with which a call is to be connected.
public struct BotStream: Hashable, Sendable {
    /// The bot's address: a WebSocket.
    public let address: WebAddress
    /// Parameters for the bot.
    public let parameters: [String: String]
    /// The stream's name in requests.
    public let name: String?
    /// Receives the stream's status.
    public let statusCallback: Webhook?
    /// Answers with the next instructions when the stream has ended.
    public let action: Webhook?
    /// The format of the caller's sound, if the document names one.
    public let callerFormat: PlivoWire.ContentType?
}

/// The party that a call's peer calls instead of this device.
public struct BotTransfer: Hashable, Sendable {
    /// A user's name, a telephone number, or a SIP address.
    public let target: String
    /// Answers with the next instructions if the transfer fails.
    public let action: Webhook?

    /// Makes one.
    public init(to target: String, action: Webhook? = nil) {
        self.target = target
        self.action = action
    }
}

/// What is wrong with a webhook's answer. The message is for the webhook's author and does not repeat the answer.
public struct MarkupFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line; 1-based, and 0 if the fault is in no one line.
    public let line: Int
    /// The message.
    public let description: String

    init(_ line: Int, _ description: String) {
        self.line = line
        self.description = description
    }
}
