/**
 * The OpenCode plugin of observational-memory: calls its script on OpenCode's events, and puts the block (the notes of
 * a session) into the summariser's prompt and, after a compaction, into every later request of that session.
 *
 * Owns nothing but what it was told for each session since OpenCode started. Invariants: no hook ever throws or waits
 * longer than its limit; what the script prints is used only if it is JSON; the block of a session is the same string in
 * every request until its next compaction; one session never gets another one's block. It triggers no compaction.
 *
 * Options (the second element of the plugin's entry in opencode.json):
 *   command          how the script is called: a shell line, as other hook configs have it (with or without its last
 *                    words `hook opencode`), or an array of words; by default the launcher in the data folder
 *   replace_summary  true: the block takes the place of the summary
 */

import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { isAbsolute, join } from "node:path"

const LIMITS = { idle: 10_000, message: 3_000, resumed: 13_000, compacting: 30_000, recall: 15_000, tool: 20_000, shorten: 8_000 } // milliseconds
const MOST_OUTPUT = 1 << 20 // characters of an answer; a block has at most some 40,000
const ATTEMPTS = 3 // how often a session's block is asked for while the script fails
const LONGEST_WORD = 64 // characters of an id or a range
const LONGEST_RANGE = 6_000 // characters, about 2,000 tokens; without a range the script keeps to them itself
// The system prompts of OpenCode's own side requests, which are not the session's.
const SIDE_REQUEST = /^\s*You are a (?:title generator|context summarization agent)/
const OPENING = "<observational-memory "
const SHELLS = ["bash", "shell"]
const SESSION = "OBSERVATIONAL_MEMORY_OPENCODE_SESSION" // by it our commands know the session that runs them

export const ObservationalMemory = async (input, options) => {
  const { OBSERVATIONAL_MEMORY_WORKER, OBSERVATIONAL_MEMORY_OFF, OPENCODE_DB } = process.env
  if (OBSERVATIONAL_MEMORY_WORKER || isOff(OBSERVATIONAL_MEMORY_OFF)) return {}
  if (OPENCODE_DB === ":memory:") return {} // sessions that are kept nowhere: an observer's, or a trial's
  const directory = text(input?.directory) || process.cwd()
  const call = caller(options?.command, directory)
  const replaces = options?.replace_summary === true
  const sessions = new Map()
  // Beside this file; where only this one was copied, old results stay whole.
  const thin = await import("./thin-view.mjs").catch(() => undefined)

  /** What is known of a session. `block`: undefined = not asked yet. `compacting`: from its hook until it is over. */
  const known = (id) => {
    if (!sessions.has(id)) sessions.set(id, { child: false, block: undefined, asking: undefined, attempts: 0, compacting: undefined })
    return sessions.get(id)
  }

  const hook = (event, sessionID, milliseconds) =>
    call(["hook", "opencode", event], { sessionID, directory, db: database() }, milliseconds)

  /** The block in the script's answer; "" for none, undefined where the script failed. */
  const blockOf = (done) => {
    if (done.status !== 0) return undefined
    if (!done.stdout.trim()) return ""
    return text(parsed(done.stdout)?.context)
  }

  /** The session's block: asked for once, by however many requests at the same time, and then remembered. */
  const remembered = async (id) => {
    const session = known(id)
    if (session.block === undefined && session.attempts < ATTEMPTS) {
      session.asking ??= hook("session.resumed", id, LIMITS.resumed).then((done) => {
        session.attempts += 1
        session.block ??= blockOf(done)
        session.asking = undefined
        if (done.status === 0) tell(parsed(done.stdout))
      })
      await session.asking
    }
    return session.block ?? ""
  }

  /** The compaction is over and has succeeded: what was rendered for it is the session's block from now on. */
  const adopt = (session) => {
    if (!session.compacting) return
    const { block, replaced } = session.compacting
    session.block = replaced ? "" : block
    session.attempts = 0
    session.compacting = undefined
  }

  /** Some of the session is being taken back, its compaction maybe: ask again what its next request is to carry. */
  const forget = (session) => {
    session.block = undefined
    session.attempts = 0
  }

  const onEvent = ({ event }) => {
    const properties = event?.properties ?? {}
    const info = properties.info ?? {}
    const id = text(properties.sessionID) || text(info.id)
    if (!id) return
    if (event.type === "session.created" || event.type === "session.updated") {
      if (text(info.parentID)) known(id).child = true
      if (info.revert) forget(known(id))
    } else if (event.type === "session.compacted") {
      adopt(known(id))
    } else if (event.type === "session.deleted") {
      sessions.delete(id)
    } else if (event.type === "session.idle" && !known(id).child) {
      // Not waited for: `opencode run` ends without waiting for it, and the child goes on by itself.
      void hook("session.idle", id, LIMITS.idle)
    }
  }

  const onCompacting = async ({ sessionID }, output) => {
    const id = text(sessionID)
    if (!id || known(id).child) return
    const session = known(id)
    session.compacting = { block: undefined, system: undefined, replaced: false, replaces: false }
    const block = blockOf(await hook("experimental.session.compacting", id, LIMITS.compacting))
    if (!session.compacting) return
    session.compacting.block = block
    if (!block) return
    if (replaces && output.prompt === undefined) {
      session.compacting.replaces = true
      output.prompt = 'The summary of this conversation is written already. Answer with the one word "Done".'
    } else if (!output.context.includes(block)) {
      output.context.push(block)
    }
  }

  const onSystem = async ({ sessionID, model }, output) => {
    const id = text(sessionID)
    if (id && model?.limit?.context > 0) known(id).limit = model.limit.context - (model.limit.output || 0)
    if (!id || !Array.isArray(output?.system) || known(id).child) return
    const prompt = output.system.join("\n")
    const session = known(id)
    if (session.compacting) {
      // The first request after the compacting hook is the summariser's, and so is each repetition of it.
      session.compacting.system ??= prompt
      if (session.compacting.system === prompt) return
      adopt(session)
    }
    if (SIDE_REQUEST.test(prompt)) return
    const block = await remembered(id)
    if (block && !output.system.includes(block)) output.system.push(block)
  }

  /** A new prompt while a compaction still seems to run: it failed, and the session goes on as it was. */
  const onMessage = async ({ sessionID }, output) => {
    const id = text(sessionID)
    if (sessions.has(id)) sessions.get(id).compacting = undefined
    if (id && !known(id).child && Array.isArray(output?.parts) && text(output.message?.id)) await warn(id, output)
  }

  /** A warning that waits goes behind the prompt's own words, where it stays, and to whoever sits at the terminal. */
  const warn = async (id, output) => {
    const done = await hook("chat.message", id, LIMITS.message)
    const said = done.status === 0 && done.stdout.trim() ? parsed(done.stdout) : undefined
    const words = text(said?.context)
    if (!words) return
    const place = { id: partBehind(output.parts), sessionID: id, messageID: output.message.id }
    output.parts.push({ ...place, type: "text", text: words, synthetic: true })
    tell(said)
  }

  /** What is for whoever sits at the terminal alone. */
  const tell = (said) => {
    const notice = { title: "observational-memory", message: text(said?.notice), variant: "warning", duration: 15_000 }
    if (notice.message) void input?.client?.tui?.showToast?.({ body: notice })?.catch?.(() => undefined)
  }

  /** OpenCode says so only of a compaction that succeeded. */
  const onContinue = ({ sessionID }) => {
    if (sessions.has(sessionID)) adopt(sessions.get(sessionID))
  }

  /** With `replace_summary`: what the summariser said gives way to the block. */
  const onText = ({ sessionID }, output) => {
    const compacting = sessions.get(sessionID)?.compacting
    if (!compacting?.replaces || compacting.system === undefined) return
    output.text = compacting.replaced ? "" : compacting.block
    compacting.replaced = true
  }

  const recall = async (given, context) => {
    const id = word(given?.id)
    const [range, rest] = bounded(word(given?.range))
    if (!id) return "recall needs an id as the block shows it: 3fa9c1d for a note, 7c2e.812 for an entry."
    const masked = unmasked(text(context?.sessionID), id, range)
    if (masked !== undefined) return masked
    const where = text(context?.directory) || directory
    const words = ["recall", id, ...(range ? ["--range", range] : [])]
    const done = await call(words, { sessionID: text(context?.sessionID), directory: where }, LIMITS.recall, where)
    if (done.stdout) return done.stdout + rest
    return done.stderr.trim() || `recall gave no answer (${done.failure || `exit status ${done.status}`}).`
  }

  /** Run one of the tools that the script has for agents: its arguments go in as JSON, its answer comes out as text. */
  const use = async (name, given, context) => {
    const where = text(context?.directory) || directory
    const session = text(context?.sessionID)
    const wanted = Object.fromEntries(Object.entries(given ?? {}).filter(([, value]) => value !== "" && value != null))
    const done = await call(["mcp", "--call", name], wanted, LIMITS.tool, where, session ? { [SESSION]: session } : {})
    if (done.stdout) return done.stdout
    return done.stderr.trim() || `${name} gave no answer (${done.failure || `exit status ${done.status}`}).`
  }

  const tool = (name, description, args) => ({
    description,
    args,
    execute: async (given, context) => (await guarded((input) => use(name, input, context))(given)) ?? `${name} failed.`,
  })

  /**
   * What a shell printed, shortened where the script does so: it keeps the whole first. Whatever goes wrong, or takes too long,
   * leaves it as it is.
   */
  const onOutput = async ({ tool, sessionID, callID, args }, output) => {
    const printed = text(output?.output)
    if (!SHELLS.includes(tool) || !text(sessionID) || !text(callID)) return
    const settings = shortening()
    if (settings.reduce !== true || !(Buffer.byteLength(printed) >= settings.minimum)) return
    const { exit, truncated, outputPath } = output.metadata ?? {}
    const path = truncated ? text(outputPath) : ""
    if (truncated && !path) return
    const command = text(args?.command)
    const payload = { sessionID, directory, db: database(), tool, callID, command, output: printed, exit, path }
    const done = await call(["hook", "opencode", "tool.execute.after"], payload, LIMITS.shorten)
    const shortened = done.status === 0 ? text(parsed(done.stdout)?.output) : ""
    if (shortened) output.output = shortened
  }

  /** With `view: thin`: mask old results in what goes out. What is kept of them stays as it is. */
  const onMessages = (_, output) => {
    const messages = Array.isArray(output?.messages) ? output.messages : []
    const id = text(messages.at(-1)?.info?.sessionID)
    if (!id || !thin || shortening().view !== "thin") return
    const session = known(id)
    session.masked ??= new Set(thin.readMasked(dataFolder(), id))
    const results = thin.resultsIn(messages)
    const more = session.limit ? thin.toMask(messages, results, session) : []
    for (const one of more) session.masked.add(one.callID)
    if (more.length > 0) thin.writeMasked(dataFolder(), id, [...session.masked])
    session.whole = new Map()
    for (const { at, part } of results) {
      if (!session.masked.has(part.callID)) continue
      session.whole.set(part.callID, part.state.output)
      const state = { ...part.state, output: thin.maskOf(part) }
      const parts = messages[at].parts.map((one) => (one.callID === part.callID ? { ...one, state } : one))
      messages[at] = { ...messages[at], parts }
    }
  }

  /** A masked result's own words, from the conversation itself. */
  const unmasked = (sessionID, id, range) => {
    const whole = sessions.get(sessionID)?.whole?.get(id)
    if (whole === undefined) return undefined
    const [start, end] = range ? range.split(":").map(Number) : [0, LONGEST_RANGE]
    const last = Math.min(end, start + LONGEST_RANGE, whole.length)
    const rest = last < whole.length ? `\n[characters ${start} to ${last} of ${whole.length}; go on with range "${last}:${last + LONGEST_RANGE}"]` : ""
    return whole.slice(start, last) + rest
  }

  /** What the session's shells run knows which session that is. */
  const onShell = ({ sessionID }, output) => {
    if (text(sessionID) && output.env) output.env[SESSION] = sessionID
  }

  return {
    event: guarded(onEvent),
    "chat.message": guarded(onMessage),
    "experimental.session.compacting": guarded(onCompacting),
    "experimental.compaction.autocontinue": guarded(onContinue),
    "experimental.chat.system.transform": guarded(onSystem),
    "experimental.text.complete": guarded(onText),
    "shell.env": guarded(onShell),
    "tool.execute.after": guarded(onOutput),
    "experimental.chat.messages.transform": guarded(onMessages),
    tool: {
      recall: {
        description:
          "Print the exact words of this session behind an id that its observational-memory block shows: a note or " +
          "reflection ([3fa9c1d]) with what it cites, or one entry (7c2e.812). Use it before relying on details.",
        args: {
          id: { type: "string", description: "the id, or an unambiguous beginning of one" },
          range: { type: "string", description: 'characters of one long entry, as "2000:6000"; "" for all that fits' },
        },
        execute: async (given, context) => (await guarded(recall)(given, context)) ?? "recall failed.",
      },
      memory_search: tool(
        "search",
        "Find words in the record of all agent sessions of this workspace, best first, each with its id: names, errors, " +
          "paths, decisions. Use it before you guess or ask again.",
        {
          query: { type: "string", description: "what to look for; any text" },
          more: { type: "string", description: 'what the answer before gave as more; "" for the first page' },
        },
      ),
      memory_pin: tool(
        "pin",
        "Keep words in every memory block from now on. Only for what the user asked to keep, or a lasting decision.",
        {
          what: { type: "string", description: "the words, or the id of an entry or note" },
          scope: { type: "string", description: 'session or workspace; "" for this session' },
        },
      ),
    },
  }
}

export default ObservationalMemory

/** A hook that never throws: what goes wrong with the memory must not go wrong with the agent. */
function guarded(hook) {
  return async (input, output) => {
    try {
      return await hook(input ?? {}, output ?? {})
    } catch {
      return undefined
    }
  }
}

/**
 * Make the function that runs the script: words, a JSON value for its standard input and a limit in milliseconds give
 * {status, stdout, stderr, failure}. It never rejects; status is undefined where the script did not end by itself.
 */
function caller(command, directory) {
  const words = Array.isArray(command) ? command.filter((one) => typeof one === "string") : []
  const line = text(command).replace(/\s+hook\s+opencode\s*$/, "")
  const first = words.length > 0 ? words : line ? [] : [launcher()]
  return (more, payload, milliseconds, cwd = directory, variables = {}) =>
    new Promise((resolve) => {
      const [program, rest, shell] = shellLine(first, line, more)
      const done = { status: undefined, stdout: "", stderr: "", failure: "" }
      let child
      const end = (failure) => {
        clearTimeout(timer)
        done.failure = failure
        resolve(done)
      }
      const timer = setTimeout(() => {
        stop(child)
        end("time limit")
      }, milliseconds)
      timer.unref?.()
      try {
        const folder = existsSync(cwd) ? cwd : homedir()
        // Its own process group: it survives the end of OpenCode, and is killed as a whole at its limit.
        const detached = process.platform !== "win32"
        const env = { ...process.env, ...variables }
        child = withFile(JSON.stringify(payload), (file) =>
          spawn(program, rest, { cwd: folder, env, shell, detached, windowsHide: true, stdio: [file, "pipe", "pipe"] }),
        )
      } catch (error) {
        end(String(error?.code ?? "not started"))
        return
      }
      const collect = (name) => (piece) => {
        if (done[name].length < MOST_OUTPUT) done[name] += piece
      }
      child.stdout.setEncoding("utf8").on("data", collect("stdout"))
      child.stderr.setEncoding("utf8").on("data", collect("stderr"))
      child.on("error", (error) => end(String(error?.code ?? "not started")))
      child.on("close", (status) => {
        done.status = status ?? undefined
        end(status === null ? "killed" : "")
      })
    })
}

/**
 * Call `use` with an open file that holds these words, and is gone from its folder afterwards. A pipe would still be
 * empty for a child that is started when OpenCode is about to end: what waits to be written into it is lost then.
 */
function withFile(words, use) {
  const path = join(tmpdir(), `observational-memory-${randomUUID()}.json`)
  writeFileSync(path, words, { mode: 0o600, flag: "wx" })
  let file
  try {
    file = openSync(path, "r")
    return use(file)
  } finally {
    if (file !== undefined) closeSync(file)
    rmSync(path, { force: true })
  }
}

/** [program, arguments, whether a shell runs it]. The words of a call never go through a shell's own reading. */
function shellLine(first, line, more) {
  if (!line && process.platform !== "win32") return [first[0], [...first.slice(1), ...more], false]
  if (!line) return [[...first, ...more].map((one) => `"${one}"`).join(" "), [], true]
  if (process.platform === "win32") return [`${line} ${more.join(" ")}`, [], true]
  return ["/bin/sh", ["-c", `${line} "$@"`, "sh", ...more], false]
}

function stop(child) {
  try {
    if (process.platform === "win32") child?.kill()
    else if (child?.pid) process.kill(-child.pid, "SIGKILL")
  } catch {
    // it has ended already
  }
}

/** An id for a part that comes behind these: OpenCode orders parts by id, which begins with a time in 48 bits. */
function partBehind(parts) {
  const times = parts.map((part) => parseInt(text(part?.id).slice(4, 16), 16) || 0)
  const time = Math.max(Date.now() * 4096 % 2 ** 48, ...times) + 1
  return `prt_${time.toString(16).padStart(12, "0")}${randomUUID().replaceAll("-", "").slice(0, 14)}`
}

/** The launcher that an installation left in the data folder. */
function launcher() {
  return join(dataFolder(), process.platform === "win32" ? "launch.cmd" : "launch")
}

/** The data folder. The same rule as in obsmem/system/paths.py. */
function dataFolder() {
  const { OBSERVATIONAL_MEMORY_HOME, XDG_DATA_HOME, LOCALAPPDATA } = process.env
  if (OBSERVATIONAL_MEMORY_HOME) return OBSERVATIONAL_MEMORY_HOME
  if (process.platform === "win32") return join(LOCALAPPDATA || join(homedir(), "AppData", "Local"), "observational-memory")
  if (process.platform === "darwin") return join(homedir(), "Library", "Application Support", "observational-memory")
  return join(XDG_DATA_HOME?.trim() || join(homedir(), ".local", "share"), "observational-memory")
}

/** What the user's configuration says about shortening, as it was compiled for hooks; {} where nothing is to be shortened. */
function shortening() {
  try {
    return JSON.parse(readFileSync(join(dataFolder(), "shorten"), "utf8")) ?? {}
  } catch {
    return {}
  }
}

/** The database that this OpenCode keeps its sessions in. */
function database() {
  const folder = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode")
  const named = process.env.OPENCODE_DB
  if (named) return isAbsolute(named) ? named : join(folder, named)
  return join(folder, "opencode.db")
}

function isOff(value) {
  return !["", "0", "false", "no", "off"].includes((value ?? "").trim().toLowerCase())
}

function parsed(words) {
  try {
    return JSON.parse(words)
  } catch {
    return undefined
  }
}

function text(value) {
  return typeof value === "string" ? value : ""
}

/** [a range no longer than it may be, what to say about the rest of it]. */
function bounded(range) {
  const [start, end] = range.split(":").map(Number)
  if (!(end - start > LONGEST_RANGE)) return [range, ""]
  const last = start + LONGEST_RANGE
  return [`${start}:${last}`, `[cut at character ${last}; go on with range "${last}:${Math.min(end, last + LONGEST_RANGE)}"]\n`]
}

/** An id or a range: nothing that a shell or an option parser could take for something else. */
function word(value) {
  const given = text(value).trim().replace(/^\[|\]$/g, "")
  return given.length <= LONGEST_WORD && /^[\w.:][\w.:-]*$/.test(given) ? given : ""
}
