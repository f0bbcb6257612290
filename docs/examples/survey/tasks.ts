/**
 * The words of the job: what agents are told and how they ask each other. A model of any kind can work by them; the
 * offline one recognises its tasks by them.
 */

/** How many files one agent looks after. A part with more is delegated on, in slices. */
export const sliceSize = 100

export const systemPrompt = `You survey folders. Paths are relative to the surveyed folder.

Asked what is in the folder: list "." (not recursively). Give each of its sub-folders to a subagent, and the files directly in it to one more. Merge what they report.
Asked about a folder: list it. If it has more than ${sliceSize} files, give each ${sliceSize} of them to a subagent, else read every one.
Asked about files: read every one, about 25 at a time.

Make the calls that do not wait for one another in one reply. A subagent knows nothing but what you tell it: name the folder, or every file.
Report every file. Do not read links and other things that are no files, but report them too.`

export const question = "What is in this folder?"

export type Task =
  | { readonly _tag: "Whole" }
  | { readonly _tag: "Folder"; readonly path: string; readonly recursive: boolean }
  | { readonly _tag: "Files"; readonly paths: ReadonlyArray<string> }

/** A task as a prompt. */
export const ask = (task: Task): string => {
  switch (task._tag) {
    case "Whole":
      return question
    case "Folder":
      return task.recursive
        ? `Report on every file in the folder ${JSON.stringify(task.path)} and below it.`
        : `Report on the files directly in the folder ${JSON.stringify(task.path)}, and not on those below it.`
    case "Files":
      return `Report on these files: ${JSON.stringify(task.paths)}`
  }
}

/** The task that a prompt of `ask` is about. Of any other prompt: nothing. */
export const understand = (prompt: string): Task | undefined => {
  if (prompt === question) return { _tag: "Whole" }
  const folder = /^Report on (every file|the files directly) in the folder ("[^]*")/.exec(prompt)
  if (folder) return { _tag: "Folder", path: JSON.parse(folder[2]!), recursive: folder[1] === "every file" }
  const files = /^Report on these files: (\[[^]*\])$/.exec(prompt)
  return files ? { _tag: "Files", paths: JSON.parse(files[1]!) } : undefined
}
