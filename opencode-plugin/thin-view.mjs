/**
 * The thin view: which old tool results are masked in what goes out, what stands in their place, and how that is remembered.
 *
 * Owns the set of masked calls of each session, in `view/` of the data folder. Invariants: a result that was masked stays so, and its
 * mask is the same for ever, so that requests begin alike; the newest results, and short ones, are never masked.
 */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

// With `view: thin`: old tool results are masked when a request would take more of the window than FULL, the oldest first, until
// it takes no more than ROOMY; never the NEWEST, nor what is short.
const THIN = { full: 0.8, roomy: 0.5, newest: 8, least: 1_000 }
const CHARACTERS = 3.5 // of one token, about

/** The calls of a session whose results are masked: kept, so that a request after a restart begins as the one before it. */
export function readMasked(home, id) {
  try {
    return JSON.parse(readFileSync(maskedFile(home, id), "utf8")).filter((one) => typeof one === "string")
  } catch {
    return []
  }
}

export function writeMasked(home, id, calls) {
  try {
    const path = maskedFile(home, id)
    mkdirSync(join(home, "view"), { recursive: true, mode: 0o700 })
    writeFileSync(`${path}.${process.pid}.tmp`, JSON.stringify(calls), { mode: 0o600 })
    renameSync(`${path}.${process.pid}.tmp`, path)
  } catch {
    // then the first request after a restart masks nothing
  }
}

function maskedFile(home, id) {
  return join(home, "view", `${id.replace(/[^\w.-]/g, "_")}.json`)
}

/** The results that may be masked, oldest first: [{at: index of the message, part, callID, size}]. */
export function resultsIn(messages) {
  return messages.flatMap((message, at) =>
    (Array.isArray(message?.parts) ? message.parts : [])
      .filter((part) => part?.type === "tool" && part.state?.status === "completed" && text(part.callID))
      .filter((part) => text(part.state.output) && !part.state.time?.compacted)
      .map((part) => ({ at, part, callID: part.callID, size: part.state.output.length })),
  )
}

/** Those results that have to be masked now so that the request fits; none while there is room. */
export function toMask(messages, results, session) {
  const hidden = (one) => (session.masked.has(one.callID) ? one.size - maskOf(one.part).length : 0)
  const whole = messages.reduce((sum, message) => sum + sizeOf(message.parts), 0)
  const own = (whole - results.reduce((sum, one) => sum + hidden(one), 0)) / CHARACTERS
  let tokens = Math.max(own, counted(messages))
  if (tokens <= THIN.full * session.limit) return []
  const found = []
  for (const one of results.slice(0, Math.max(0, results.length - THIN.newest))) {
    if (tokens <= THIN.roomy * session.limit) break
    if (session.masked.has(one.callID) || one.size < THIN.least) continue
    found.push(one)
    tokens -= (one.size - maskOf(one.part).length) / CHARACTERS
  }
  return found
}

/** What the provider counted for the last request, its answer included, and an estimate of what came after; 0 where it never did. */
function counted(messages) {
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const { input, output, cache } = messages[at]?.info?.tokens ?? {}
    const sum = (input || 0) + (output || 0) + (cache?.read || 0) + (cache?.write || 0)
    if (!(sum > 0)) continue
    const results = resultsIn([messages[at]]).reduce((size, one) => size + one.size, 0)
    const after = messages.slice(at + 1).reduce((size, message) => size + sizeOf(message.parts), 0)
    return sum + (results + after) / CHARACTERS
  }
  return 0
}

/** The characters of what a message's parts say. */
function sizeOf(parts) {
  const words = (part) => text(part?.text).length + text(part?.state?.output).length + (part?.state?.input ? JSON.stringify(part.state.input).length : 0)
  return (Array.isArray(parts) ? parts : []).reduce((sum, part) => sum + words(part), 0)
}

/** What stands in the place of a masked result: the same for ever, so that requests begin alike. */
export function maskOf(part) {
  const size = part.state.output.length
  return `[observational-memory: this old result of ${part.tool} (${size} characters) is left out to save room. The tool recall prints it: id "${part.callID}"]`
}

function text(value) {
  return typeof value === "string" ? value : ""
}
