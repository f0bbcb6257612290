/**
 * The agents that are driven. One more agent is one more entry: what to install, how to start it with the fake model behind it, and how its
 * model runs a command and writes a file.
 */

/** A tool call as the model makes it. */
export interface ToolCall {
  readonly name: string
  readonly input: { readonly [name: string]: unknown }
}

/** What is known when an agent is started. */
export interface Place {
  /** Its packages' executables. */
  readonly bin: string
  /** A folder of its own, empty but for `files`, gone after the scenario. It is `HOME`, too. */
  readonly home: string
  /** The fake model's address, without a path. */
  readonly url: string
}

export interface RealAgent {
  readonly name: string
  /** One line for the docs. */
  readonly about: string
  /** From npm, each with its exact version. The first one is the agent. A `node` is there if it needs another than ours. */
  readonly packages: { readonly [name: string]: string }
  readonly launch: (place: Place) => {
    readonly command: string
    readonly args?: ReadonlyArray<string>
    readonly env?: { readonly [name: string]: string }
    /** Written before it starts: paths within `home`. */
    readonly files?: { readonly [path: string]: string }
  }
  /** How its model runs a command in a shell. It is expected to ask for permission. */
  readonly shell: (command: string) => ToolCall
  /** How its model writes a file. */
  readonly write: (path: string, text: string) => ToolCall
  /** How long after its start a session can be taken up by another process, if not at once. */
  readonly takenUpAfter?: `${number} seconds`
  /** Whether a command goes on after the turn in which it was begun has been cancelled. A release ends it all the same. */
  readonly leavesCommands?: boolean
  /** What it can't, by scenario, and why. */
  readonly cannot?: { readonly [scenario: string]: string }
}

export const agents: ReadonlyArray<RealAgent> = [
  {
    name: "codex-zed",
    about: "one Rust binary, OpenAI Responses",
    packages: { "@zed-industries/codex-acp": "0.16.0" },
    launch: ({ bin, home, url }) => ({
      command: `${bin}/codex-acp`,
      env: { CODEX_HOME: `${home}/codex`, OPENAI_API_KEY: "fake-key" },
      files: {
        "codex/config.toml": `
          model = "gpt-5.2"
          model_provider = "fake"
          approval_policy = "on-request"
          sandbox_mode = "read-only"
          check_for_update_on_startup = false
          [analytics]
          enabled = false
          [model_providers.fake]
          name = "fake"
          base_url = "${url}/v1"
          env_key = "OPENAI_API_KEY"
          wire_api = "responses"
        `
      }
    }),
    shell: (command) => ({
      name: "exec_command",
      input: { cmd: command, sandbox_permissions: "require_escalated", justification: "It was asked for." }
    }),
    write: (path, text) => ({ name: "write", input: { path, text } }),
    leavesCommands: true,
    cannot: { files: "it writes files itself" }
  },
  {
    name: "kimi",
    about: "Node 24, OpenAI Chat Completions",
    packages: { "@moonshot-ai/kimi-code": "2.1.0", node: "24.21.0" },
    launch: ({ bin, url }) => ({
      command: `${bin}/kimi`,
      args: ["acp"],
      env: {
        KIMI_CODE_NO_AUTO_UPDATE: "1",
        KIMI_MODEL_NAME: "fake",
        KIMI_MODEL_API_KEY: "fake-key",
        KIMI_MODEL_BASE_URL: `${url}/v1`,
        KIMI_MODEL_PROVIDER_TYPE: "openai"
      }
    }),
    shell: (command) => ({ name: "Bash", input: { command } }),
    write: (path, text) => ({ name: "Write", input: { path, content: text } })
  },
  {
    name: "gemini",
    about: "Node, Gemini API",
    packages: { "@google/gemini-cli": "0.61.0" },
    launch: ({ bin, url }) => ({
      command: `${bin}/gemini`,
      args: ["--acp"],
      env: { GEMINI_API_KEY: "fake-key", GOOGLE_GEMINI_BASE_URL: url, GEMINI_CLI_NO_RELAUNCH: "true" },
      files: {
        ".gemini/settings.json": JSON.stringify({
          general: { disableAutoUpdate: true, enableAutoUpdate: false, disableUpdateNag: true },
          model: { name: "gemini-2.5-pro" },
          privacy: { usageStatisticsEnabled: false },
          security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
          telemetry: { enabled: false }
        })
      }
    }),
    shell: (command) => ({ name: "run_shell_command", input: { command, description: "What was asked for." } }),
    write: (path, text) => ({ name: "write_file", input: { file_path: path, content: text } }),
    // it names a session's file by the minute, and overwrites it if it takes the session up within that
    takenUpAfter: "61 seconds"
  }
]
