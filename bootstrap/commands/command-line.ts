import { type ParseArgsConfig, parseArgs } from 'node:util';

/**
 * What a command was called with. Ends the process with 2 and the usage for `--help`, and for what cannot be understood
 * with what that is, too.
 */
export function commandLine<T extends ParseArgsConfig>(
  usage: string,
  config: T,
): ReturnType<typeof parseArgs<T>> {
  if (process.argv.slice(2).some((word) => word === '--help' || word === '-h')) endWithUsage(usage);
  try {
    return parseArgs(config);
  } catch (error) {
    // What follows is about programs that take such words.
    const [fault] = (error as Error).message.split('. ');
    return endWithUsage(usage, fault);
  }
}

/** Started by `npx vidimus`, a command is called so. */
export function endWithUsage(usage: string, fault?: string): never {
  if (fault !== undefined) console.error(fault);
  console.error(`usage: ${process.env['VIDIMUS_USAGE'] ?? usage}`);
  process.exit(2);
}
