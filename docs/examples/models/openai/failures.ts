/**
 * What went wrong with a call, so that it can be told what is worth a retry: too many calls from a wrong key, a server
 * that is down from a request that it will never take.
 */
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import { APIConnectionError, APIError } from "openai"

/** The reason why a call to this address has failed, or a stream from it. */
export const reasonOf = (error: unknown, url: string): AiError.AiErrorReason => {
  if (error instanceof APIError && !(error instanceof APIConnectionError)) return reasonOfAnswer(error)
  // the client's word for an answer that is no JSON
  if (error instanceof SyntaxError) return new AiError.InvalidResponseError({ description: shorten(error.message) })
  return brokenOff(url, explain(error))
}

/** A connection that can't be made or does not last. */
export const brokenOff = (url: string, description: string): AiError.NetworkError =>
  new AiError.NetworkError({ reason: "TransportError", method: "POST", url, description: shorten(description) })

/** An error that a server has answered with, at once or, without a status, amid a stream. */
const reasonOfAnswer = (error: APIError): AiError.AiErrorReason => {
  const status = statusOf(error)
  const description = shorten(error.message)
  const metadata = {
    openai: { code: textOf(error.code), type: textOf(error.type), requestId: error.requestID ?? null }
  }
  const http = status === undefined ? undefined : { http: { response: { status, headers: {} } } }
  const about = { description, metadata, ...http }
  if (error.code === "insufficient_quota" || status === 402) {
    return new AiError.QuotaExhaustedError({ metadata, ...http })
  }
  if (error.code === "content_filter") return new AiError.ContentPolicyError(about)
  const retryAfter = retryAfterOf(error.headers)
  if (status === 429 || error.code === "rate_limit_exceeded" || (retryAfter !== undefined && isPassing(status))) {
    return new AiError.RateLimitError({ metadata, ...http, ...(retryAfter && { retryAfter }) })
  }
  switch (status) {
    case 401:
      return new AiError.AuthenticationError({ kind: "InvalidKey", ...about })
    case 403:
      return new AiError.AuthenticationError({ kind: "InsufficientPermissions", ...about })
    default:
      return isPassing(status) && error.type !== "invalid_request_error"
        ? new AiError.InternalProviderError(about)
        : new AiError.InvalidRequestError(about)
  }
}

/** Amid a stream the status is gone; some servers tell it as the code. */
const statusOf = ({ code, status }: APIError): number | undefined => {
  const told: unknown = status ?? code
  return typeof told === "number" && Number.isInteger(told) && told >= 400 && told < 600 ? told : undefined
}

/** Whether the same request may be taken later. */
const isPassing = (status: number | undefined): boolean =>
  status === undefined || status >= 500 || status === 408 || status === 409

const textOf = (field: unknown): string | null =>
  typeof field === "string" || typeof field === "number" ? String(field) : null

/** In milliseconds, in seconds, or as a date: as servers like it. */
const retryAfterOf = (headers: Headers | undefined): Duration.Duration | undefined => {
  const after = headers?.get("retry-after")
  const millis = [
    numberOf(headers?.get("retry-after-ms")),
    numberOf(after) * 1000,
    Date.parse(after ?? "") - Date.now()
  ].find((millis) => Number.isFinite(millis))
  return millis === undefined ? undefined : Duration.millis(Math.max(0, Math.ceil(millis)))
}

const numberOf = (text: string | null | undefined): number => (text?.trim() ? Number(text) : Number.NaN)

/** The client says that there was an error, its cause says which. */
const explain = (error: unknown): string => {
  const words: Array<string> = []
  for (let each = error; each instanceof Error && words.length < 4; each = each.cause) words.push(each.message)
  return words.length === 0 ? String(error) : [...new Set(words.filter((word) => word !== ""))].join(": ")
}

const shorten = (text: string): string => (text.length <= 500 ? text : `${text.slice(0, 499)}…`)
