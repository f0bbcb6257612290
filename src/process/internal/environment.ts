/**
 * The environment of a child process: the host's, without what looks like a secret, and what the host adds.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Redacted from "effect/Redacted"

/** What is added to the host's environment, and what of it is let through although it looks like a secret. */
export interface EnvironmentOptions {
  readonly env?: { readonly [name: string]: string | Redacted.Redacted } | undefined
  readonly passEnv?: ReadonlyArray<string> | undefined
}

type Variables = { readonly [name: string]: string | undefined }

/** The environment of this process, where there is one. */
export const HostEnvironment: Context.Reference<Variables | undefined> = Context.Reference<Variables | undefined>(
  "effect-subagent/process/HostEnvironment",
  {
    // oxlint-disable-next-line no-restricted-globals -- read where it exists, as Effect's own ConfigProvider does
    defaultValue: () => (globalThis as { readonly process?: { readonly env: Variables } }).process?.env
  }
)

const secretName = /key|token|secret|passw|passphrase|credential|auth|cookie|private/i

/** `scheme://user:password@host`, as in the addresses of databases and proxies. */
const secretValue = /:\/\/[^/\s:@]*:[^/\s@]+@/

/** Whether a variable looks like a secret, by its name or its value. */
export const isSecret = (name: string, value: string): boolean => secretName.test(name) || secretValue.test(value)

/** What a child process is started with. */
export interface ChildEnvironment {
  readonly variables: { readonly [name: string]: string }
  /** The values in it that must never be shown. */
  readonly secrets: ReadonlyArray<string>
}

/** The environment for a child, as the host's is now. An explicit variable outranks the host's. */
export const childEnvironment = (host: Variables | undefined, options: EnvironmentOptions): ChildEnvironment => {
  const variables: Record<string, string> = {}
  const secrets = new Set<string>()
  const passed = new Set(options.passEnv)
  const add = (name: string, value: string, isHidden: boolean): void => {
    variables[name] = value
    // a short value would blank out harmless text, and is no secret worth the name
    if (isHidden && value.length >= 6) secrets.add(value)
  }
  for (const [name, value] of Object.entries({ ...host })) {
    if (value !== undefined && (passed.has(name) || !isSecret(name, value))) add(name, value, isSecret(name, value))
  }
  for (const [name, given] of Object.entries(options.env ?? {})) {
    const value = Redacted.isRedacted(given) ? Redacted.value(given) : given
    add(name, value, Redacted.isRedacted(given) || isSecret(name, value))
  }
  // longer ones first: one secret may contain another
  return { variables, secrets: Array.from(secrets).toSorted((a, b) => b.length - a.length) }
}
