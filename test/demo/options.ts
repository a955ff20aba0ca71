import { parseArgs } from 'node:util';
import { describeOptionError } from '../support/option-fault.ts';

export type Options = { readonly keep: boolean; readonly once: boolean; readonly eu: boolean };

/** Started by `npx vidimus`, it is called so. */
export const USAGE = `usage: ${process.env['VIDIMUS_USAGE'] ?? 'npm run demo -- [--eu] [--keep | --once]'}
  --eu     under the profile \`eu\`: with a registrar, a wallet provider and their trust lists
  --keep   leaves the service running, as in a terminal, and prints a link to a playground in the browser
  --once   ends when everything happened, also in a terminal
  --help   says this
PORT names the port of the service; otherwise it takes a free one.`;

export function readOptions(args: readonly string[]): Options | 'help' | { readonly fault: string } {
  try {
    const flag = { type: 'boolean', default: false } as const;
    const { values } = parseArgs({ args: [...args], options: { keep: flag, once: flag, eu: flag, help: flag } });
    if (values.help) return 'help';
    if (values.keep && values.once) return { fault: '--keep and --once exclude each other' };
    return { keep: values.keep, once: values.once, eu: values.eu };
  } catch (error) {
    return { fault: describeOptionError(error) };
  }
}
