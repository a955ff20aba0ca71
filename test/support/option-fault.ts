/** Describes a fault of the options of a command in one line. @param error the error of `parseArgs`. */
export function describeOptionError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const unknown = /^Unknown option '([^']+)'/.exec(message)?.[1];
  if (unknown !== undefined) return `${unknown} is not known`;
  const missing = /^Option '(?:-\w, )?(--[\w-]+) <value>' argument missing/.exec(message)?.[1];
  if (missing !== undefined) return `${missing} has no value`;
  return message.split('\n')[0]?.replace(/\. .*$/, '') ?? message;
}
