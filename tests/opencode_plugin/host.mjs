/**
 * A host for the plugin, as small as can be: calls its hooks as OpenCode does, and prints what became of each.
 *
 * `node host.mjs PLUGIN` reads {options, input, hurry, steps} from standard input. A step is [hook, input, output], or a
 * list of such steps that run at the same time; ["recall", arguments, context] runs the tool, ["toasts"] tells what the
 * user was shown. Prints one value for each
 * step: {output} after a hook, {result} of the tool, or {threw}. `hurry` divides every time limit.
 */

import { pathToFileURL } from "node:url"
import { readFileSync, writeFileSync } from "node:fs"

const { options, input, hurry, steps } = JSON.parse(readFileSync(0, "utf8"))
const original = globalThis.setTimeout
globalThis.setTimeout = (call, milliseconds, ...more) => original(call, milliseconds / (hurry ?? 1), ...more)

const module = await import(pathToFileURL(process.argv[2]).href)
const toasts = []
const client = { tui: { showToast: async ({ body }) => toasts.push(body.message) } }
const hooks = await module.default({ client, ...(input ?? { directory: process.cwd() }) }, options)

async function run([name, given, output]) {
  try {
    if (name === "tool") return { result: hooks.tool ? await hooks.tool[given].execute(...output) : null }
    if (name === "recall") return { result: hooks.tool ? await hooks.tool.recall.execute(given, output) : null }
    if (name === "keys") return { result: [...Object.keys(hooks), ...Object.keys(hooks.tool ?? {})].sort() }
    if (name === "toasts") return { result: toasts }
    if (name === "wait") return { result: await new Promise((end) => original(end, given)) }
    await hooks[name]?.(given, output)
    return { output }
  } catch (error) {
    return { threw: String(error) }
  }
}

const results = []
for (const step of steps) {
  results.push(Array.isArray(step[0]) ? await Promise.all(step.map(run)) : await run(step))
}
writeFileSync(1, JSON.stringify(results)) // all of it: a stream would lose what a pipe does not hold yet
process.exit(0) // as OpenCode ends: without waiting for anything
