/**
 * The blocks that prompts and outputs are made of.
 *
 * Five kinds, in the shapes that MCP and ACP share, so that a block crosses either wire as it is. Callers build them
 * (or hand in a plain string, which stands for one text block), providers receive and emit them. Blocks are values:
 * nobody changes one after it was handed over.
 *
 * @see https://agentclientprotocol.com/protocol/content
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * Hints about who a block is for, as MCP and ACP define them. Carried through, never read here.
 *
 * @category models
 * @since 0.1.0
 */
export interface Annotations {
  readonly audience?: ReadonlyArray<"assistant" | "user">
  /** From 0 (optional) to 1 (required). */
  readonly priority?: number
  /** ISO 8601. */
  readonly lastModified?: string
}

/**
 * Plain text or Markdown.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextBlock {
  readonly type: "text"
  readonly text: string
  readonly annotations?: Annotations
  readonly _meta?: { readonly [key: string]: unknown }
}

/**
 * A picture, base64-encoded.
 *
 * @category models
 * @since 0.1.0
 */
export interface ImageBlock {
  readonly type: "image"
  readonly data: string
  readonly mimeType: string
  readonly uri?: string
  readonly annotations?: Annotations
  readonly _meta?: { readonly [key: string]: unknown }
}

/**
 * Sound, base64-encoded.
 *
 * @category models
 * @since 0.1.0
 */
export interface AudioBlock {
  readonly type: "audio"
  readonly data: string
  readonly mimeType: string
  readonly annotations?: Annotations
  readonly _meta?: { readonly [key: string]: unknown }
}

/**
 * A pointer to a resource the reader may fetch by itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResourceLinkBlock {
  readonly type: "resource_link"
  readonly uri: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  /** In bytes. */
  readonly size?: number
  readonly annotations?: Annotations
  readonly _meta?: { readonly [key: string]: unknown }
}

/**
 * A resource with its contents: text, or a base64 blob.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResourceBlock {
  readonly type: "resource"
  readonly resource:
    | { readonly uri: string; readonly mimeType?: string; readonly text: string }
    | { readonly uri: string; readonly mimeType?: string; readonly blob: string }
  readonly annotations?: Annotations
  readonly _meta?: { readonly [key: string]: unknown }
}

/**
 * One piece of a prompt or of an output.
 *
 * @category models
 * @since 0.1.0
 */
export type ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | ResourceBlock

/**
 * The kinds of block beside text, which every provider takes. A provider names the ones it accepts in
 * `Capabilities.content`.
 *
 * @category models
 * @since 0.1.0
 */
export type ContentKind = Exclude<ContentBlock["type"], "text">

const shared = {
  annotations: Schema.optionalKey(
    Schema.Struct({
      audience: Schema.optionalKey(Schema.Array(Schema.Literals(["assistant", "user"]))),
      priority: Schema.optionalKey(Schema.Finite),
      lastModified: Schema.optionalKey(Schema.String)
    })
  ),
  _meta: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
}

/**
 * The schema of a block, for whoever takes one from outside.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ContentBlock: Schema.Codec<ContentBlock> = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, ...shared }),
  Schema.Struct({
    type: Schema.Literal("image"),
    data: Schema.String,
    mimeType: Schema.String,
    uri: Schema.optionalKey(Schema.String),
    ...shared
  }),
  Schema.Struct({ type: Schema.Literal("audio"), data: Schema.String, mimeType: Schema.String, ...shared }),
  Schema.Struct({
    type: Schema.Literal("resource_link"),
    uri: Schema.String,
    name: Schema.String,
    title: Schema.optionalKey(Schema.String),
    description: Schema.optionalKey(Schema.String),
    mimeType: Schema.optionalKey(Schema.String),
    size: Schema.optionalKey(Schema.Finite),
    ...shared
  }),
  Schema.Struct({
    type: Schema.Literal("resource"),
    resource: Schema.Union([
      Schema.Struct({ uri: Schema.String, mimeType: Schema.optionalKey(Schema.String), text: Schema.String }),
      Schema.Struct({ uri: Schema.String, mimeType: Schema.optionalKey(Schema.String), blob: Schema.String })
    ]),
    ...shared
  })
])

/**
 * One text block.
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (value: string): TextBlock => ({ type: "text", text: value })

/**
 * The text blocks of a list, joined as they stand. Blocks of other kinds have no text and are left out.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toText = (blocks: ReadonlyArray<ContentBlock>): string => {
  let out = ""
  for (const block of blocks) {
    if (block.type === "text") out += block.text
  }
  return out
}

/**
 * Whether a list says anything: a block that is not text, or text that is not only white space.
 *
 * @category guards
 * @since 0.1.0
 */
export const isBlank = (blocks: ReadonlyArray<ContentBlock>): boolean =>
  blocks.every((block) => block.type === "text" && block.text.trim() === "")
