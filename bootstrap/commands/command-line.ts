import { type ParseArgsConfig, parseArgs } from 'node:util';

/**
 * Reads the arguments of a command. For `--help` it ends the process with the exit code 2 and the usage, and for invalid arguments with
 * the fault as well.
 * @param helpText describes each option. A command that passes it answers `--help` with it on standard output, with the exit code 0.
 */
export function commandLine<T extends ParseArgsConfig>(usage: string, config: T, helpText?: string): ReturnType<typeof parseArgs<T>> {
  if (process.argv.slice(2).some((word) => word === '--help' || word === '-h')) {
    if (helpText === undefined) endWithUsage(usage);
    console.log(`${usageOf(usage)}\n${helpText}`);
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    // The sentences after the first describe programs that accept such words.
    const [fault] = (error as Error).message.split('. ');
    return endWithUsage(usage, fault);
  }
}

/** `npx vidimus` sets the name under which the command was started. */
function usageOf(usage: string): string {
  return `usage: ${process.env['VIDIMUS_USAGE'] ?? usage}`;
}

export function endWithUsage(usage: string, fault?: string): never {
  if (fault !== undefined) console.error(fault);
  console.error(usageOf(usage));
  process.exit(2);
}
