internal import JSON

/// The answer to a bot's request, in the form of the service that the bot takes this device for.
public struct ServiceAnswer: Equatable, Sendable {
    /// The status of HTTP.
    public let status: Int
    /// JSON, or nothing.
    public let body: [UInt8]

    /// The value of `Content-Type`, if there is a body.
    public var contentType: String? { body.isEmpty ? nil : "application/json" }

    private init(_ status: Int, _ value: JSONValue? = nil) {
        self.status = status
        // Texts and whole numbers, which cannot fail.
        body = value.flatMap { try? JSONText($0).bytes } ?? []
    }

    /// A call was ended.
    ///
    /// - Parameters:
    ///   - call: The call, which the bot's library reads from Twilio's answer.
    ///   - status: Its present status.
    public static func done(_ service: BotService, _ call: WireCall, _ status: TwilioWebhook.Status) -> ServiceAnswer {
        switch service {
        case .twilio: ServiceAnswer(200, twilio(call, status))
        case .telnyx: ServiceAnswer(200, ["data": ["result": "ok"]])
        case .plivo: ServiceAnswer(204)
        }
    }

    /// The answer for a call that gets other instructions, in the service's form.
    public static func redirected(
        _ service: BotService, _ call: WireCall, _ status: TwilioWebhook.Status
    ) -> ServiceAnswer {
        guard service == .plivo else { return done(service, call, status) }
        return ServiceAnswer(
            202,
            [
                "message": "call transferred", "call_uuids": [.string(call.call)], "api_id": .string(call.call),
            ])
    }

    /// The answer for a placed call, in Twilio's form.
    public static func placed(_ call: WireCall) -> ServiceAnswer { ServiceAnswer(201, twilio(call, .queued)) }

    private static func twilio(_ call: WireCall, _ status: TwilioWebhook.Status) -> JSONValue {
        let direction: JSONValue =
            switch call.direction {
            case .incoming: "inbound"
            case .outgoing: "outbound-api"
            case .dialled: "outbound-dial"
            }
        return [
            "sid": .string(call.call), "account_sid": .string(call.account), "from": .string(call.from),
            "to": .string(call.to), "status": .string(status.rawValue), "direction": direction,
            "api_version": "2010-04-01",
            "uri": .string("/2010-04-01/Accounts/\(call.account)/Calls/\(call.call).json"),
        ]
    }

    /// A request is not followed.
    public static func refused(_ fault: ServiceFault) -> ServiceAnswer {
        switch fault.service {
        case .twilio?, nil: twilio(fault)
        case .telnyx?: telnyx(fault)
        case .plivo?: plivo(fault)
        }
    }

    private static func twilio(_ fault: ServiceFault) -> ServiceAnswer {
        let (status, usualCode): (Int, Int64) =
            switch fault.kind {
            case .noSuchPath, .noSuchCall: (404, 20_404)
            case .wrongMethod: (405, 20_004)
            case .unauthorized: (401, 20_003)
            case .callOver: (400, 21_220)
            case .badRequest: (400, 20_001)
            case .forbidden: (403, 20_008)
            case .tooMany: (429, 20_429)
            case .unavailable: (503, 20_503)
            }
        let code = fault.twilioCode ?? usualCode
        return ServiceAnswer(
            status,
            [
                "status": .integer(Int64(status)), "code": .integer(code), "message": .string(fault.description),
                "more_info": .string("https://www.twilio.com/docs/errors/\(code)"),
            ])
    }

    private static func telnyx(_ fault: ServiceFault) -> ServiceAnswer {
        let (status, code, title): (Int, JSONValue, JSONValue) =
            switch fault.kind {
            case .noSuchPath: (404, "10005", "Resource not found")
            case .noSuchCall: (404, "10005", "Resource not found")
            case .wrongMethod: (405, "10013", "Method not allowed")
            case .unauthorized: (401, "10009", "Authentication failed")
            case .callOver: (422, "90018", "Call has already ended")
            case .badRequest: (400, "10015", "Bad Request")
            case .forbidden: (403, "10010", "Authorization failed")
            case .tooMany: (429, "10011", "Too many requests")
            case .unavailable: (503, "10007", "Unexpected error")
            }
        return ServiceAnswer(
            status, ["errors": [["code": code, "title": title, "detail": .string(fault.description)]]])
    }

    private static func plivo(_ fault: ServiceFault) -> ServiceAnswer {
        let status =
            switch fault.kind {
            case .noSuchPath, .noSuchCall, .callOver: 404
            case .wrongMethod: 405
            case .unauthorized: 401
            case .badRequest: 400
            case .forbidden: 403
            case .tooMany: 429
            case .unavailable: 503
            }
        return ServiceAnswer(status, ["error": .string(fault.description)])
    }
}
