import { parseArgs } from 'node:util';
import { optionFault } from '../support/option-fault.ts';

export type Options = { readonly keep: boolean; readonly eu: boolean };

/** Started by `npx vidimus`, it is called so. */
export const USAGE = `usage: ${process.env['VIDIMUS_USAGE'] ?? 'npm run demo -- [--eu] [--keep]'}
  --eu     under the profile \`eu\`: with a registrar, a wallet provider and their trust lists
  --keep   leaves the service running
  --help   says this`;

export function readOptions(given: readonly string[]): Options | 'help' | { readonly fault: string } {
  try {
    const flag = { type: 'boolean', default: false } as const;
    const { values } = parseArgs({ args: [...given], options: { keep: flag, eu: flag, help: flag } });
    return values.help ? 'help' : { keep: values.keep, eu: values.eu };
  } catch (error) {
    return { fault: optionFault(error) };
  }
}
