import { type ParseArgsConfig, parseArgs } from 'node:util';

/**
 * What a command was called with. Ends the process with 2 and the usage for `--help`, and for what cannot be understood
 * with what that is, too.
 * @param about says what each option is for; a command that has it answers `--help` with it, on standard output and with 0.
 */
export function commandLine<T extends ParseArgsConfig>(usage: string, config: T, about?: string): ReturnType<typeof parseArgs<T>> {
  if (process.argv.slice(2).some((word) => word === '--help' || word === '-h')) {
    if (about === undefined) endWithUsage(usage);
    console.log(`${usageOf(usage)}\n${about}`);
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    // What follows is about programs that take such words.
    const [fault] = (error as Error).message.split('. ');
    return endWithUsage(usage, fault);
  }
}

/** Started by `npx vidimus`, a command is called so. */
function usageOf(usage: string): string {
  return `usage: ${process.env['VIDIMUS_USAGE'] ?? usage}`;
}

export function endWithUsage(usage: string, fault?: string): never {
  if (fault !== undefined) console.error(fault);
  console.error(usageOf(usage));
  process.exit(2);
}
